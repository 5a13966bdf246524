"use strict";
// Keeps a page up to date by asking for it again and taking over what has changed.
(() => {
  const SOON = 1500;
  const LATER = 10000;
  const TYPED = 200;

  const $ = (id, root = document) => root.querySelector(`#${id}`);
  const list = $("list");
  const live = $("live");
  const filter = $("filter");
  const hasFocus = (element) => element.contains(document.activeElement) && document.activeElement !== document.body;

  async function fetched(address) {
    const answer = await fetch(address, { cache: "no-store" });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  }

  // Replaces what differs. Status texts change in place: otherwise a screen reader would not announce them.
  function renew(old, fresh) {
    if (!old || !fresh || old.isEqualNode(fresh)) return;
    if (old.getAttribute("role") === "status") old.replaceChildren(...fresh.childNodes);
    else if (!hasFocus(old)) old.replaceWith(fresh);
  }

  // The rows of the list in their order, those that are chosen still chosen.
  function renewList(page) {
    const fresh = $("list", page);
    if (!fresh) return;
    const [rows, others] = [list, fresh].map((root) => root.querySelector("ul.list"));
    if (!rows || !others) return renew(list.querySelector("section.results"), fresh.querySelector("section.results"));
    const known = new Map([...rows.children].map((row) => [row.dataset.run, row]));
    const next = [...others.children].map((row) => {
      const old = known.get(row.dataset.run);
      if (!old) return row;
      const box = old.querySelector("input[name=run]");
      if (box?.checked) row.querySelector("input[name=run]")?.setAttribute("checked", "");
      const same = [...old.children].every((part, place) => part.matches(".pick") || part.isEqualNode(row.children[place]));
      return same || hasFocus(old) ? old : row;
    });
    if (next.length !== rows.children.length || next.some((row, place) => row !== rows.children[place])) {
      if (!hasFocus(rows)) rows.replaceChildren(...next);
    }
    for (const id of ["count", "running", "found"]) renew($(id), $(id, page));
    for (const part of ["nav.pages"]) {
      const [old, other] = [list, fresh].map((root) => root.querySelector(part));
      if (old && other) renew(old, other);
      else if (old) old.remove();
      else if (other) list.querySelector("form.runs").after(other);
    }
    list.dataset.running = fresh.dataset.running;
    choose();
  }

  function choose() {
    const boxes = [...list.querySelectorAll("input[name=run]")];
    if (!$("compare")) return;
    const count = boxes.filter((box) => box.checked).length;
    $("compare").disabled = count !== 2;
    $("chosen").textContent = count === 2 ? "" : count > 2 ? `${count} chosen: choose only two` : `${count} of 2 chosen`;
  }

  if (filter) {
    let due;
    filter.form.querySelector("button").hidden = true;
    filter.addEventListener("input", () => {
      clearTimeout(due);
      due = setTimeout(async () => {
        const address = new URL(location.href);
        address.searchParams.set("q", filter.value);
        address.searchParams.delete("page");
        history.replaceState(null, "", address);
        const page = await fetched(address).catch(() => null);
        if (page && new URL(location.href).searchParams.get("q") === filter.value) renewList(page);
      }, TYPED);
    });
    list.addEventListener("change", choose);
    choose();
  }

  // The progress of a run, part by part, so that the focus stays where it is.
  function renewLive(page) {
    const fresh = $("live", page);
    if (!fresh) return;
    if (fresh.dataset.state !== "running") return location.reload();
    const words = $("words", fresh);
    if ($("words") && words) {
      renew($("words"), words.cloneNode(true));
      const [old, other] = [live, fresh].map((root) => root.querySelector("section.answer"));
      for (const part of ["p.of", "progress"]) renew(old.querySelector(part), other.querySelector(part));
    }
    const charts = fresh.querySelectorAll("figure");
    const drawn = live.querySelectorAll("figure");
    const same = charts.length === drawn.length && [...charts].every((figure, place) => figure.id === drawn[place].id);
    if (same) charts.forEach((figure, place) => renew(drawn[place], figure));
    for (const part of same ? [".results"] : [".now", ".results"]) {
      const [old, other] = [live, fresh].map((root) => root.querySelector(part));
      if (old && other) renew(old, other);
      else if (other) live.append(other);
      else old?.remove();
    }
  }

  const isRunning = () => (live ? live.dataset.state === "running" : list?.dataset.running === "true");

  async function again() {
    if (!document.hidden) {
      // It may have ended, or be started again: the next time.
      const page = await fetched(live ? live.dataset.live : location.href).catch(() => null);
      if (page && live) renewLive(page);
      else if (page) renewList(page);
    }
    if (list || isRunning()) setTimeout(again, isRunning() ? SOON : LATER);
  }
  if (list || (live && isRunning())) setTimeout(again, isRunning() ? SOON : LATER);
})();
