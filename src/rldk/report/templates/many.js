// The table of many runs: sorting, searching, choosing which runs are drawn; grouping and the x axis of their curves.
(() => {
  const table = document.querySelector("table.runs"), source = document.getElementById("runs-data");
  if (!table || !source) return;
  const { panels, view, colour, COLOURS, draw, leave, zoom } = report;
  const given = JSON.parse(source.textContent);
  const overlays = panels.filter((panel) => panel.data.overlay), body = table.tBodies[0];
  const rows = [...body.rows], byRun = new Map(rows.map((row) => [Number(row.dataset.run), row]));
  const FEW = matchMedia("(max-width: 760px)").matches ? 12 : 50, IN_LEGEND = 8, AXES = { step: "steps", log: "steps, logarithmic", progress: "share of each run" };
  const state = { order: null, down: false, search: "", verdict: "", all: rows.length <= FEW, axis: "", status: "" };

  function make(tag, properties, ...inside) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...inside);
    return made;
  }

  function choice(label, options, chosen, change) {
    const select = make("select", {}, ...options.map(([value, words]) => make("option", { value, textContent: words })));
    select.value = chosen;
    select.addEventListener("change", () => change(select.value));
    return make("label", {}, `${label} `, select);
  }

  // Which runs are drawn. A run keeps its colour while it is shown, and no two that are shown have the same.
  view.names = given.names;
  view.ends = new Map(given.ends.map((ends, run) => [run, ends]));
  const drawable = new Set(overlays.flatMap((panel) => panel.data.curves.map((curve) => curve.run)));

  function show(run, wanted) {
    if (!wanted) { view.colours.delete(run); return true; }
    if (view.colours.has(run)) return true;
    const taken = new Set(view.colours.values());
    const free = Array.from({ length: COLOURS }, (_, number) => number).find((number) => !taken.has(number));
    if (free === undefined) return false;
    view.colours.set(run, free);
    return true;
  }

  function only(runs) {
    view.colours.clear();
    const left = runs.filter((run) => !show(run, true)).length;
    state.status = left ? `${COLOURS} runs at once are drawn; ${left} more are not. Group them to see all.` : "";
    refresh();
  }

  const lengths = () => [...view.colours.keys()].map((run) => given.ends[run][1] - given.ends[run][0]).filter((length) => length > 0).sort((a, b) => a - b);

  function axis() {
    if (state.axis) return state.axis;
    const known = lengths(); // the rule of differ_in_length
    const place = (known.length - 1) / 4, low = known[Math.floor(place)], next = known[Math.ceil(place)];
    return known.length > 1 && known.at(-1) >= 5 * (low + (next - low) * (place % 1)) ? "log" : "step";
  }

  function refresh() {
    const next = axis();
    if (next !== view.axis) { view.axis = next; zoom(null); }
    for (const panel of overlays) {
      draw(panel);
      panel.figure.hidden = !panel.curves.length; // none of the runs that are drawn has its metrics
      leave(panel);
      legend(panel);
    }
    for (const [run, row] of byRun) {
      const drawn = view.colours.has(run), box = row.querySelector("input");
      if (box) box.checked = drawn;
      row.querySelector(".swatch").style.background = drawn ? colour(view.colours.get(run)) : "transparent";
    }
    automatic.textContent = `automatic: ${AXES[next]}`;
    status.textContent = state.status || (view.group ? `Mean of the runs of each group, and a band of one standard deviation between them.` : `${view.colours.size} of ${drawable.size} runs are drawn.`);
  }

  function legend(panel) {
    panel.figure.querySelector(".legend")?.remove();
    const seen = new Set();
    const entries = panel.curves.filter((curve) => !seen.has(curve.colour) && seen.add(curve.colour));
    const list = make("ul", { className: "legend" });
    for (const curve of entries.slice(0, IN_LEGEND)) {
      const swatch = make("i", {}), button = make("button", { type: "button", title: view.group ? "" : "Hide this run" }, swatch, view.group ? curve.name : given.names[curve.run]);
      swatch.style.background = colour(curve.colour);
      const strong = (number) => { view.strong = number; overlays.forEach(draw); };
      button.addEventListener("pointerenter", () => strong(curve.colour));
      button.addEventListener("pointerleave", () => strong(null));
      if (!view.group) button.addEventListener("click", () => { view.strong = null; show(curve.run, false); refresh(); });
      list.append(make("li", {}, button));
    }
    const styles = new Map(panel.curves.filter((curve) => curve.style !== "solid").map((curve) => [curve.label, curve.style]));
    for (const [label, style] of view.group ? [] : styles) list.append(make("li", {}, `${style === "dashed" ? "- - -" : "· · ·"} ${label}`));
    if (entries.length > IN_LEGEND) list.append(make("li", {}, `and ${entries.length - IN_LEGEND} more: point at a curve`));
    panel.figure.querySelector("figcaption").after(list);
  }

  // The table: which rows are shown, and in which order.
  function sorted() {
    if (state.order === null) return rows;
    const cell = (row) => row.cells[state.order].dataset.sort ?? row.cells[state.order].textContent.trim();
    const key = (row) => { const text = cell(row); return text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text); };
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true }));
    return rows.map((row) => [key(row), row]).sort(([a], [b]) => (a === null ? (b === null ? 0 : 1) : b === null ? -1 : (state.down ? -1 : 1) * compare(a, b))).map(([, row]) => row);
  }

  function matches() {
    let test = () => true;
    if (state.search) {
      const plain = state.search.toLowerCase();
      test = (text) => text.toLowerCase().includes(plain);
      try { const found = new RegExp(state.search, "i"); test = (text) => found.test(text); } catch { /* not a pattern: as plain text */ }
    }
    return rows.filter((row) => (!state.verdict || row.dataset.verdict === state.verdict) && test(row.textContent));
  }

  function arrange() {
    const kept = new Set(matches());
    body.append(...sorted());
    let shown = 0;
    for (const row of body.rows) { row.hidden = !kept.has(row) || (!state.all && shown >= FEW); if (!row.hidden) shown++; }
    more.hidden = state.all || kept.size <= FEW;
    more.textContent = `Show all ${kept.size} runs`;
    count.textContent = kept.size === rows.length ? "" : `${kept.size} of ${rows.length} runs`;
    heads.forEach((head, column) => head.setAttribute("aria-sort", column !== state.order ? "none" : state.down ? "descending" : "ascending"));
  }

  function order(column) {
    const number = heads[column].classList.contains("number");
    if (state.order === column) state.down = !state.down;
    else { state.order = column; state.down = number && !/since|health/.test(heads[column].dataset.key); }
    picker.querySelector("select").value = String(column);
    arrange();
  }

  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", className: "sort" }, head.textContent);
    button.addEventListener("click", () => order(column));
    head.replaceChildren(button);
  });
  for (const [run, row] of byRun) {
    if (!drawable.has(run)) continue;
    const box = make("input", { type: "checkbox", ariaLabel: `Draw ${given.names[run]}` });
    box.addEventListener("change", () => {
      state.status = show(run, box.checked) ? "" : `${COLOURS} runs at once are drawn: hide one first, or group them.`;
      refresh();
    });
    row.cells[0].prepend(box);
  }
  const search = make("input", { type: "search", placeholder: "Search runs (a regular expression)", ariaLabel: "Search runs" });
  search.addEventListener("input", () => { state.search = search.value.trim(); arrange(); });
  const count = make("span", { className: "soft" }), more = make("button", { type: "button" });
  more.addEventListener("click", () => { state.all = true; arrange(); });
  const verdicts = [...new Set(rows.map((row) => row.dataset.verdict))];
  const filter = choice("Verdict", [["", "all"], ...verdicts.map((name) => [name, name.replace("_", " ")])], "", (value) => { state.verdict = value; arrange(); });
  const picker = choice("Sort by", [["", "worst first"], ...heads.map((head, column) => [String(column), head.textContent])], "", (value) => {
    if (value === "") { state.order = null; state.down = false; arrange(); } else { state.order = null; order(Number(value)); }
  });
  document.getElementById("runs-tools").append(search, filter, picker, count);
  document.getElementById("runs-more").append(more);

  const automatic = make("option", { value: "" }), status = make("span", { className: "soft", role: "status" });
  const along = choice("X axis", Object.entries(AXES), "step", (value) => { state.axis = value; refresh(); });
  along.querySelector("select").prepend(automatic);
  along.querySelector("select").value = "";
  const worst = given.names.map((_, run) => run).filter((run) => drawable.has(run));
  const tools = document.getElementById("curve-tools");
  if (tools) {
    const press = (words, action) => { const button = make("button", { type: "button" }, words); button.addEventListener("click", action); return button; };
    const listed = () => [...body.rows].filter((row) => !row.hidden).map((row) => Number(row.dataset.run)).filter((run) => drawable.has(run));
    tools.append(
      press(`The worst ${Math.min(given.first, worst.length)}`, () => only(worst.slice(0, given.first))),
      press("Those in the table", () => only(listed())),
      press("None", () => only([])),
      along,
    );
    if (given.groupings.length) {
      tools.append(choice("Draw", [["", "each run"], ...given.groupings.map((name) => [name, `groups by ${name}`])], given.group, (value) => { view.group = value; state.status = ""; refresh(); }));
    }
    tools.append(status);
  }
  view.group = given.group;
  worst.slice(0, given.first).forEach((run) => show(run, true));
  arrange();
  refresh();

  // A link to a run that is folded away opens it.
  const reveal = () => { const found = location.hash.length > 1 && document.getElementById(location.hash.slice(1)); const folded = found && found.querySelector(":scope > details.folded"); if (folded) folded.open = true; };
  addEventListener("hashchange", reveal);
  reveal();
})();
