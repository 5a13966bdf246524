"use strict";
// Keeps a page up to date by asking for it again and taking over what has changed; sorts and filters the list.
(() => {
  const SOON = 1500;
  const LATER = 10000;

  const list = document.querySelector("table.list tbody");
  const live = document.getElementById("live");
  const filter = document.getElementById("filter");
  const heads = [...document.querySelectorAll("table.list thead th")].slice(1);
  let order = null;

  const hasFocus = (element) => element.contains(document.activeElement) && document.activeElement !== document.body;

  // Takes over what differs, and leaves alone whatever somebody is at.
  function renew(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (!hasFocus(old) && !old.querySelector("input")) return void old.replaceWith(fresh);
    if (old.children.length !== fresh.children.length || old.tagName !== fresh.tagName) {
      if (!hasFocus(old)) old.replaceWith(fresh);
      return;
    }
    for (const { name, value } of fresh.attributes) old.setAttribute(name, value);
    [...old.children].forEach((child, place) => renew(child, fresh.children[place] ?? child));
  }

  function renewList(page) {
    const rows = new Map([...list.rows].map((row) => [row.dataset.run, row]));
    const fresh = [...page.querySelectorAll("table.list tbody tr")];
    for (const row of fresh) {
      const old = rows.get(row.dataset.run);
      rows.delete(row.dataset.run);
      if (!old) list.prepend(row);
      else [...row.cells].forEach((cell, place) => renew(old.cells[place], cell));
      if (old) old.dataset.state = row.dataset.state;
    }
    rows.forEach((row) => hasFocus(row) || row.remove());
    ["count", "running"].forEach((id) => renew(document.getElementById(id), page.getElementById(id)));
    arrange();
    choose();
  }

  const value = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent.trim();
    return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
  };

  function arrange() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of list.rows) {
      const text = `${row.textContent} ${row.dataset.words}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    if (!order) return;
    const { column, sign } = order;
    const rows = [...list.rows];
    const sorted = rows.toSorted((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    });
    if (sorted.some((row, place) => row !== rows[place]) && !sorted.some(hasFocus)) list.append(...sorted);
  }

  function choose() {
    const boxes = [...list.querySelectorAll("input[name=run]")];
    const count = boxes.filter((box) => box.checked).length;
    document.querySelector(".tools button").disabled = count !== 2;
    document.getElementById("chosen").textContent = count === 2 ? "" : `${count} of 2 chosen`;
  }

  if (list) {
    filter.parentElement.hidden = false;
    filter.addEventListener("input", arrange);
    list.addEventListener("change", choose);
    heads.forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const again = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", again ? "descending" : "ascending");
        order = { column: place + 1, sign: again ? -1 : 1 };
        arrange();
      });
    });
    choose();
    arrange();
  }

  function renewLive(page) {
    const fresh = page.getElementById("live");
    if (!fresh) return;
    // What is read out is changed in place, or a reader of the screen would not hear of it.
    const [words, now] = [document.getElementById("words"), fresh.querySelector("#words")];
    if (words.textContent !== now.textContent) words.textContent = now.textContent;
    const [done, share] = [live.querySelector("progress"), fresh.querySelector("progress")];
    if (done && share) done.value = share.value;
    live.dataset.state = fresh.dataset.state;
    for (const part of [".results", ".links"]) {
      const [old, other] = [live.querySelector(part), fresh.querySelector(part)];
      if (old && other) renew(old, other);
      else if (other) live.insertBefore(other, live.querySelector(".links"));
    }
    renew(document.getElementById("state"), page.getElementById("state"));
  }

  const isRunning = () => (live ? live.dataset.state === "running" : !!document.querySelector("tr[data-state=running]"));

  async function again() {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (answer.ok) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          if (list) renewList(page);
          else renewLive(page);
        }
      } catch {
        // It has ended, or is being started again: the next time.
      }
    }
    setTimeout(again, isRunning() ? SOON : LATER);
  }
  if (list || live) setTimeout(again, isRunning() ? SOON : LATER);
})();
