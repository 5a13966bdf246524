"use strict";
// What a page does beyond being read: values under the pointer, servers lit, hidden or alone in all figures of their
// part at once, tables sorted, and all of this kept in the address. Every picture is drawn before; nothing is drawn here.
(() => {
  const NEAR = 18;
  const $ = (root, what) => [...root.querySelectorAll(what)];
  const sheet = document.styleSheets[0];
  const rule = (text) => sheet.cssRules[sheet.insertRule(text, sheet.cssRules.length)];
  const never = ":not(*)";

  // --- Values -------------------------------------------------------------------------------------------------

  const tip = document.getElementById("tip");
  let marked = null;

  // The points of a picture: where they lie in it, and what they say. Read from the picture when it is first needed.
  const known = new WeakMap();
  function points(svg) {
    if (known.has(svg)) return known.get(svg);
    const found = [];
    const add = (x, y, text, element, server) => found.push({ x, y, text, element, server });
    const of = (element) => element.closest("[data-s]")?.dataset.s;
    for (const element of $(svg, "path[data-at][data-t]")) {
      const [x, y] = element.dataset.at.split(" ").map(Number);
      add(x, y, element.dataset.t, element, of(element));
    }
    for (const element of $(svg, "path[data-t]:not([data-y],[data-at])")) {
      const box = element.getBBox();
      add(box.x + box.width / 2, box.y + box.height / 2, element.dataset.t, element, of(element));
    }
    for (const line of $(svg, "path[data-y]")) {
      const [low, high, from, to, log] = svg.dataset.x.split(" ").map(Number);
      const places = line.getAttribute("d").match(/-?[\d.]+/g).map(Number);
      line.dataset.y.split("|").forEach((value, place) => {
        const [x, y] = places.slice(2 * place, 2 * place + 2);
        const share = (x - from) / (to - from);
        const at = log ? low * (high / low) ** share : low + share * (high - low);
        const { before, after } = svg.dataset;
        add(x, y, `${line.dataset.t} ${before}${Number(at.toPrecision(3)).toLocaleString("en")}${after}: ${value}`, null, of(line));
      });
    }
    found.sort((one, other) => one.x - other.x || one.y - other.y);
    known.set(svg, found);
    return found;
  }

  const isShown = (svg, point) => !hiddenIn(svg).has(point.server);

  function say(svg, point) {
    marked?.classList.remove("at");
    marked = point?.element ?? null;
    marked?.classList.add("at");
    if (!point) return void (tip.hidden = true);
    tip.textContent = point.text;
    tip.hidden = false;
    const place = new DOMPoint(point.x, point.y).matrixTransform(svg.getScreenCTM());
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(place.x - box.width / 2, 6), innerWidth - box.width - 6);
    const above = place.y - box.height - 12;
    tip.style.left = `${left}px`;
    tip.style.top = `${above < 4 ? place.y + 14 : above}px`;
  }

  function nearest(svg, event) {
    const bar = event.target.closest?.("path[data-t]:not([data-y],[data-at])");
    if (bar) return points(svg).find((point) => point.element === bar);
    const inverse = svg.getScreenCTM()?.inverse();
    if (!inverse) return null;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(inverse);
    const reach = NEAR * inverse.a;
    let best = null;
    let least = Infinity;
    for (const point of points(svg)) {
      // Lines with many points answer to any height: what matters there is when.
      const across = Math.abs(point.x - at.x);
      const far = point.element ? Math.hypot(across, point.y - at.y) : across + Math.abs(point.y - at.y) / 9;
      if (far < least && (point.element ? far <= reach : across <= reach) && isShown(svg, point)) [best, least] = [point, far];
    }
    return best;
  }

  const pictureOf = (event) => event.target.closest?.("svg.p");
  for (const kind of ["pointermove", "pointerdown"]) {
    document.addEventListener(kind, (event) => {
      const svg = pictureOf(event);
      if (svg) say(svg, nearest(svg, event));
      else if (!tip.hidden) say(null, null);
    });
  }
  addEventListener("scroll", () => tip.hidden || say(null, null), { passive: true, capture: true });

  // With the keyboard: a picture has the focus, arrows go from point to point.
  const reached = new WeakMap();
  document.addEventListener("keydown", (event) => {
    const svg = pictureOf(event);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Escape") say(null, null);
    if (!svg || !step) return;
    const shown = points(svg).filter((point) => isShown(svg, point));
    if (!shown.length) return;
    const next = reached.has(svg) ? reached.get(svg) + step : step > 0 ? 0 : shown.length - 1;
    const place = Math.min(Math.max(next, 0), shown.length - 1);
    reached.set(svg, place);
    say(svg, shown[place]);
    event.preventDefault();
  });
  document.addEventListener("focusout", () => say(null, null));

  // --- Servers ------------------------------------------------------------------------------------------------

  // Each part of a study has servers of its own.
  const scopes = $(document, "article.part").concat(document.querySelector("main")).map((root, place) => {
    root.dataset.scope = place;
    const own = `[data-scope="${place}"]`;
    const isInner = (element) => element.closest("[data-scope]") === root;
    return {
      root,
      name: root.id,
      hidden: new Set(),
      buttons: $(root, ".key button[data-server]").filter(isInner),
      all: $(root, ".key .all").find(isInner),
      drawn: $(root, ".pictures [data-s]").filter(isInner),
      dim: rule(`${never}{opacity:.16}`),
      light: rule(`${never}{background:var(--band)}`),
      select: (places, what) => places.map((place) => what.replaceAll("$", own).replaceAll("#", `[data-s="${place}"]`)).join() || never,
    };
  });
  const scopeOf = (element) => scopes.find((scope) => scope.root === element.closest("[data-scope]"));
  const hiddenIn = (element) => scopeOf(element)?.hidden ?? new Set();
  const places = (button) => button.dataset.server.split(" ");
  const isHidden = (scope, button) => places(button).every((place) => scope.hidden.has(place));

  function show(scope) {
    scope.buttons.forEach((button) => button.setAttribute("aria-pressed", String(!isHidden(scope, button))));
    if (scope.all) scope.all.hidden = scope.hidden.size === 0;
    for (const element of scope.drawn) element.classList.toggle("off", scope.hidden.has(element.dataset.s));
    light(scope, null);
    keep();
  }
  function alone(scope, button) {
    const others = scope.buttons.filter((other) => other !== button);
    const isAlone = others.every((other) => isHidden(scope, other)) && !isHidden(scope, button);
    scope.hidden.clear();
    if (!isAlone) others.flatMap(places).forEach((place) => scope.hidden.add(place));
    show(scope);
  }
  function light(scope, lit) {
    const key = lit?.join() ?? "";
    if (scope.lit === key) return;
    scope.lit = key;
    const not = lit?.map((place) => `:not([data-s="${place}"])`).join("");
    scope.dim.selectorText = lit ? `[data-scope="${scope.root.dataset.scope}"] .pictures [data-s]${not}` : never;
    scope.light.selectorText = lit ? scope.select(lit, "$ tr# th,$ tr# td") : never;
  }
  for (const scope of scopes) {
    for (const button of scope.buttons) {
      button.parentElement.hidden = false;
      button.addEventListener("click", (event) => {
        if (event.detail > 1) return;
        if (event.shiftKey) return alone(scope, button);
        const change = isHidden(scope, button) ? "delete" : "add";
        places(button).forEach((place) => scope.hidden[change](place));
        show(scope);
      });
      // Its first click has hidden it, or shown it again.
      button.addEventListener("dblclick", () => {
        const change = isHidden(scope, button) ? "delete" : "add";
        places(button).forEach((place) => scope.hidden[change](place));
        alone(scope, button);
      });
    }
    scope.all?.addEventListener("click", () => {
      scope.hidden.clear();
      show(scope);
    });
  }
  const litBy = (target) => {
    const button = target.closest?.(".key button[data-server]");
    if (button) return places(button);
    const place = target.closest?.(".pictures [data-s],tr[data-s]")?.dataset.s;
    if (place === undefined) return null;
    // It may have a place in each of the runs that are shown.
    const own = scopeOf(target).buttons.map(places).find((all) => all.includes(place));
    return own ?? [place];
  };
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, ({ target }) => {
      const scope = target.closest && scopeOf(target);
      scopes.forEach((other) => light(other, other === scope ? litBy(target) : null));
    });
  }

  // --- Tables -------------------------------------------------------------------------------------------------

  const FACTORS = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, KiB: 1024, MiB: 1048576, GiB: 1073741824, k: 1e3, M: 1e6 };
  function value(row, column) {
    const cell = row.cells[column];
    if (!cell) return Infinity;
    const text = (cell.querySelector(".value") ?? cell).textContent.trim();
    const found = text.match(/^(-?[\d,.]+)\s*([A-Za-zµ]+)?/);
    return found ? Number(found[1].replaceAll(",", "")) * (FACTORS[found[2]] ?? 1) : text || Infinity;
  }
  const tables = $(document, "table").filter((table) => table.tHead && $(table, "tbody tr:not(.group)").length > 1);
  function sort(table, column, sign) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (place === column && sign) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    table.dataset.sort = sign ? `${column}${sign > 0 ? "a" : "d"}` : "";
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
      rows.forEach((row, place) => (row.dataset.first ??= place));
      const by = (one, other) => {
        if (!sign) return one.dataset.first - other.dataset.first;
        const [a, b] = [value(one, column), value(other, column)];
        const numbers = typeof a === "number" && typeof b === "number";
        // What has no number stays below, whichever way.
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return sign * (numbers ? (a === b ? 0 : a - b) : a.localeCompare(b));
      };
      body.append(...rows.sort(by));
    }
  }
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(table, column, now === "descending" ? 1 : now === "ascending" ? 0 : -1);
        keep();
      });
    });
  }

  // --- Flame graphs -------------------------------------------------------------------------------------------

  for (const svg of $(document, "svg.flames")) {
    const frames = [...svg.children].map((element) => {
      const [from, width, top] = ["x", "width", "y"].map((name) => parseFloat(element.getAttribute(name)));
      return { element, from, width, top, text: element.querySelector("title").textContent };
    });
    const name = (frame) => frame.element.querySelector("text").textContent.toLowerCase();
    const within = (inner, outer) => inner.from >= outer.from - 1e-3 && inner.from + inner.width <= outer.from + outer.width + 1e-3;
    const isShown = (frame) => !frame.element.classList.contains("off");
    let [root, marked] = [frames[0], null];
    function zoom(to) {
      root = to;
      for (const frame of frames) {
        // What calls the function stays above it, as wide as the picture.
        const above = frame.top <= to.top && within(to, frame);
        const shown = above || within(frame, to);
        frame.element.classList.toggle("off", !shown);
        const [from, width] = above ? [0, 100] : [(100 * (frame.from - to.from)) / to.width, (100 * frame.width) / to.width];
        frame.element.setAttribute("x", `${from}%`);
        frame.element.setAttribute("width", `${width}%`);
      }
    }
    function mark(frame) {
      marked?.element.classList.remove("on");
      marked = frame;
      if (!frame) return void (tip.hidden = true);
      frame.element.classList.add("on");
      tip.textContent = frame.text;
      tip.hidden = false;
      const place = frame.element.getBoundingClientRect();
      const box = tip.getBoundingClientRect();
      tip.style.left = `${Math.min(Math.max(place.left, 6), innerWidth - box.width - 6)}px`;
      tip.style.top = `${place.top > box.height + 12 ? place.top - box.height - 6 : place.bottom + 6}px`;
    }
    const at = (event) => frames.find((frame) => frame.element === event.target.closest("svg.flames>svg"));
    svg.addEventListener("pointermove", (event) => mark(at(event) ?? null));
    svg.addEventListener("pointerleave", () => mark(null));
    svg.addEventListener("click", (event) => {
      const frame = at(event);
      if (frame) zoom(frame);
    });
    svg.addEventListener("keydown", (event) => {
      const shown = frames.filter(isShown);
      const now = marked && isShown(marked) ? marked : null;
      const beside = (frame) => frame.top === now.top;
      const next = {
        ArrowUp: () => shown.filter((frame) => frame.top < now.top && within(now, frame)).pop(),
        ArrowDown: () => shown.find((frame) => frame.top > now.top && within(frame, now)),
        ArrowLeft: () => shown.filter((frame) => beside(frame) && frame.from < now.from).pop(),
        ArrowRight: () => shown.find((frame) => beside(frame) && frame.from > now.from),
      }[event.key];
      if (next) mark(now ? (next() ?? now) : root);
      else if (event.key === "Enter" && now) zoom(now);
      else if (event.key === "Escape") zoom(frames[0]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    const find = svg.parentElement.querySelector(".find");
    find.hidden = false;
    find.querySelector("input").addEventListener("input", ({ target }) => {
      const wanted = target.value.trim().toLowerCase();
      let covered = 0;
      let until = -1;
      const hits = frames.filter((frame) => wanted && name(frame).includes(wanted));
      frames.forEach((frame) => frame.element.classList.toggle("hit", hits.includes(frame)));
      // Nested hits count once.
      for (const hit of hits.toSorted((one, other) => one.from - other.from || other.width - one.width)) {
        if (hit.from < until - 1e-3) continue;
        covered += hit.width;
        until = hit.from + hit.width;
      }
      find.querySelector("output").textContent = wanted ? `${hits.length} found, ${covered.toFixed(1)} % of the width` : "";
    });
  }

  // --- The address --------------------------------------------------------------------------------------------

  // "#results~hide=epoll,poll&sort=0.3d": after the ~ what is seen, so that a link shows the same.
  let reading = false;
  function keep() {
    if (reading) return;
    const state = [];
    for (const scope of scopes) {
      const names = scope.buttons.filter((button) => isHidden(scope, button)).map((button) => encodeURIComponent(button.textContent));
      if (names.length) state.push(`hide${scope.name && `:${encodeURIComponent(scope.name)}`}=${names.join()}`);
    }
    tables.forEach((table, place) => table.dataset.sort && state.push(`sort=${place}.${table.dataset.sort}`));
    const anchor = location.hash.split("~")[0] || "#";
    const hash = state.length ? `${anchor}~${state.join("&")}` : anchor;
    try {
      history.replaceState(null, "", hash);
    } catch {
      // A page without an origin may not: then its address stays as it is.
    }
  }
  function read() {
    const [anchor, state] = location.hash.split("~");
    if (state === undefined) return;
    reading = true;
    scopes.forEach((scope) => scope.hidden.clear());
    for (const part of state.split("&")) {
      const [what, values = ""] = part.split("=");
      const [kind, name = ""] = what.split(":").map(decodeURIComponent);
      if (kind === "hide") {
        const scope = scopes.find((one) => one.name === name);
        const names = new Set(values.split(",").map(decodeURIComponent));
        scope?.buttons.filter((button) => names.has(button.textContent)).flatMap(places).forEach((place) => scope.hidden.add(place));
      }
      const sorted = kind === "sort" && values.match(/^(\d+)\.(\d+)([ad])$/);
      if (sorted && tables[sorted[1]]) sort(tables[sorted[1]], Number(sorted[2]), sorted[3] === "a" ? 1 : -1);
    }
    scopes.forEach(show);
    reading = false;
    if (anchor.length > 1) document.getElementById(decodeURIComponent(anchor.slice(1)))?.scrollIntoView();
  }
  addEventListener("hashchange", read);
  read();

  // The whole answer is printed, folded or not.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = $(document, ".answer details:not([open]):not(.numbers)");
    opened.forEach((details) => (details.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));
})();
