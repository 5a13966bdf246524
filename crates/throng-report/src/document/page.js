"use strict";
// Each part of a page has its own figures, and its own servers to hide.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => dark.matches && !printing;

  // A trace that has a place for each server, without those that are hidden.
  function shown(trace, hidden) {
    const of = (values) => values?.filter((_, place) => !hidden.has(trace.meta.servers[place]));
    const { x, y, text, customdata, marker } = trace;
    return {
      ...trace,
      x: of(x),
      y: of(y),
      text: of(text),
      customdata: of(customdata),
      marker: { opacity: of(marker?.opacity) ?? 1 },
    };
  }

  function traces(figure, hidden) {
    return figure.traces.map((all) => {
      const trace = all.meta.servers ? shown(all, hidden) : all;
      if (trace.meta.lightScale) {
        return {
          ...trace,
          visible: !hidden.has(trace.meta.server),
          colorscale: isDark() ? trace.meta.darkScale : trace.meta.lightScale,
        };
      }
      if (trace.meta.ink) return { ...trace, textfont: { color: css("--ink") } };
      const colour = isDark() ? trace.meta.dark : trace.meta.light;
      return {
        ...trace,
        visible: !hidden.has(trace.meta.server),
        marker: {
          ...trace.marker,
          color: colour,
          line: trace.meta.servers ? { color: css("--card"), width: 1 } : { color: colour, width: 1.5 },
        },
        ...(trace.line ? { line: { ...trace.line, color: colour } } : {}),
        ...(trace.error_y
          ? { error_y: { ...trace.error_y, color: trace.type === "bar" ? css("--ink") : colour } }
          : {}),
      };
    });
  }

  function layout(figure) {
    const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--quiet"), automargin: true };
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--ink") },
      margin: { l: 62, r: 14, t: 14, b: 48 },
      showlegend: false,
      hovermode: "closest",
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
      modebar: { color: css("--quiet"), activecolor: css("--accent"), bgcolor: "rgba(0,0,0,0)" },
      ...figure.layout,
      xaxis: { ...axis, ...figure.layout.xaxis },
      yaxis: { ...axis, ...figure.layout.yaxis },
    };
  }

  // Maps that are shown lie below each other, each with its name above it and an axis of its own.
  function below(figure, hidden) {
    const shown = figure.traces.filter((trace) => !hidden.has(trace.meta.server));
    const base = layout(figure);
    const step = 1 / Math.max(shown.length, 1);
    const axes = { annotations: [] };
    const drawn = traces(figure, hidden).filter((trace) => trace.visible).map((trace, place) => {
      const number = place ? String(place + 1) : "";
      const top = 1 - place * step;
      axes[`yaxis${number}`] = { ...base.yaxis, domain: [top - step * 0.98, top - Math.min(0.3 * step, 0.05)], dtick: trace.y.at(-1) / trace.y[0] > 40 ? 1 : "D2" };
      axes.annotations.push({
        text: `<b>${trace.name}</b>`, showarrow: false, xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "top", yshift: 3,
      });
      return { ...trace, yaxis: `y${number}` };
    });
    const last = drawn.length > 1 ? `y${drawn.length}` : "y";
    return [drawn, { ...base, ...axes, xaxis: { ...base.xaxis, anchor: last, showgrid: false } }];
  }

  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

  // Draws the figures of a part, once they come near what is looked at; returns what draws them again.
  function part(root) {
    const figures = JSON.parse(root.querySelector("script").textContent);
    const hidden = new Set();
    const place = (figure) => document.getElementById(`${root.dataset.figures}plot-${figure.id}`);
    const drawn = new Set();
    const drawOne = (figure) => {
      drawn.add(figure);
      if (figure.traces[0]?.type === "heatmap") {
        Plotly.react(place(figure), ...below(figure, hidden), config);
        return;
      }
      Plotly.react(place(figure), traces(figure, hidden), layout(figure), config);
    };
    const draw = () => figures.filter((figure) => printing || drawn.has(figure)).forEach(drawOne);

    const buttons = [...root.querySelectorAll(".key button")];
    // A server has a place in each of the runs that are shown.
    const places = (button) => button.dataset.server.split(" ").map(Number);
    const isHidden = (button) => places(button).every((place) => hidden.has(place));
    const hide = (button) => places(button).forEach((place) => hidden.add(place));
    function show() {
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(!isHidden(button))));
      draw();
    }
    buttons.forEach((button) => {
      button.addEventListener("click", () => {
        if (isHidden(button)) places(button).forEach((place) => hidden.delete(place));
        else hide(button);
        show();
      });
      button.addEventListener("dblclick", () => {
        const others = buttons.filter((other) => other !== button);
        const alone = others.every(isHidden) && !isHidden(button);
        hidden.clear();
        if (!alone) others.forEach(hide);
        show();
      });
    });

    const near = new IntersectionObserver(
      (entries) =>
        entries
          .filter((entry) => entry.isIntersecting)
          .forEach((entry) => {
            near.unobserve(entry.target);
            drawOne(figures.find((figure) => place(figure) === entry.target));
          }),
      { rootMargin: "800px" },
    );
    figures.forEach((figure) => near.observe(place(figure)));
    return draw;
  }

  const parts = [...document.querySelectorAll("[data-figures]")].map(part);
  const draw = () => parts.forEach((again) => again());
  dark.addEventListener("change", draw);
  addEventListener("beforeprint", () => { printing = true; draw(); });
  addEventListener("afterprint", () => { printing = false; draw(); });
})();
