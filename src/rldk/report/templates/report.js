"use strict";
// Values under the pointer, and a zoom that all panels share. Without this script the page is whole, only still.
const report = (() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = { solid: "", dashed: "6 4", faint: "2 3" };
  const TONES = { critical: "var(--rldk-critical)", warning: "var(--rldk-warning)", good: "var(--rldk-good)" };
  const COLOURS = 32;
  const colour = (number) => `var(--rldk-s${number % COLOURS})`;
  const short = (value) => {
    if (value === null) return "not finite";
    const rounded = Number(value.toPrecision(4));
    return rounded !== 0 && Math.abs(rounded) < 1e-4 ? rounded.toExponential() : rounded.toString();
  };
  const panels = [];
  // What figures with many runs show: a colour for each run that is drawn, the names of all, a grouping, and the x axis.
  const view = { colours: new Map(), names: [], group: "", axis: null, strong: null };
  let span = null, ofProgress = false; // the part of the x axis that is shown, in steps or hours, or in % of each run

  function element(parent, tag, attributes, words) {
    const made = document.createElementNS(NS, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (words !== undefined) made.textContent = words;
    parent.append(made);
    return made;
  }

  function rounds(low, high, about) {
    const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.8);
    const found = [];
    for (let number = Math.ceil(low / step - 1e-9); number * step <= high + 1e-9 * step; number++) found.push(number * step);
    return found;
  }

  function scale(low, high, start, end, log) {
    const [from, to] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    const at = (value) => {
      const given = log ? Math.log10(Math.max(value, low)) : value;
      return start + ((Math.min(Math.max(given, from), to) - from) / (to - from)) * (end - start);
    };
    const back = (place) => {
      const found = from + ((place - start) / (end - start)) * (to - from);
      return log ? 10 ** found : found;
    };
    const free = (value) => start + (((log ? Math.log10(Math.max(value, low / 1e3)) : value) - from) / (to - from)) * (end - start);
    const ticks = (about) => {
      const first = Math.ceil(from), last = Math.floor(to);
      if (!log || last - first < 1) return rounds(low, high, about);
      const every = Math.max(1, Math.ceil((last - first) / about)), found = [];
      for (let power = first; power <= last; power += every) found.push(10 ** power);
      return found;
    };
    return { low, high, at, back, free, ticks, start, end };
  }

  // The curves that a figure draws now, each with its name, its colour and its places on the x axis.
  function curvesOf(panel) {
    const { data } = panel;
    if (!data.overlay) return data.curves;
    const axis = view.axis || "step";
    const chosen = view.group
      ? data.groups[view.group] || []
      : data.curves.filter((curve) => view.colours.has(curve.run)).map((curve) => ({ ...curve, colour: view.colours.get(curve.run), name: named(panel, curve) }));
    if (axis !== "progress") return chosen;
    return chosen.map((curve) => {
      const [first, last] = view.group ? [curve.x[0], curve.x.at(-1)] : view.ends.get(curve.run);
      return { ...curve, x: curve.x.map((value) => (last > first ? (100 * (value - first)) / (last - first) : 0)) };
    });
  }

  function named(panel, curve) {
    const name = view.names[curve.run] || `run ${curve.run + 1}`;
    return panel.labels > 1 ? `${name} · ${curve.label}` : name;
  }

  const logarithmic = (panel) => (panel.data.overlay && view.axis ? view.axis === "log" : panel.data.xlog);
  const byProgress = (panel) => Boolean(panel.data.overlay) && view.axis === "progress";
  const axisName = (panel) => (byProgress(panel) ? "%" : panel.data.axis);

  // From the first to the last value; a logarithmic axis begins at the first that is positive.
  function extent(panel, curves) {
    let low = Infinity, high = -Infinity, positive = Infinity;
    const runs = view.group || byProgress(panel) ? [] : [...view.colours.keys()].map((run) => view.ends.get(run)); // one axis for all figures
    for (const x of [...runs, ...curves.map((curve) => curve.x)]) {
      if (!x.length) continue;
      low = Math.min(low, x[0]);
      high = Math.max(high, x.at(-1));
      const first = x.find((value) => value > 0);
      if (first !== undefined) positive = Math.min(positive, first);
    }
    if (low > high) return panel.data.x;
    if (logarithmic(panel) && high > 0) low = low > 0 ? low : Math.min(positive, high / 10);
    return high > low ? [low, high] : logarithmic(panel) ? [low / 2, high * 2] : [low - 0.5, low + 0.5];
  }

  function heights(data, curves, range) {
    let low = Infinity, high = -Infinity;
    const take = (value) => {
      if (value === null || (data.log && value <= 0)) return;
      low = Math.min(low, value);
      high = Math.max(high, value);
    };
    for (const curve of curves) {
      curve.x.forEach((x, row) => {
        if (x < range[0] || x > range[1]) return;
        take(curve.y[row]);
        for (const band of curve.bands) { take(band[0][row]); take(band[1][row]); }
      });
    }
    if (low > high) return data.log ? [0.1, 10] : [0, 1];
    const size = high - low;
    for (const [y] of data.levels) {
      if (y >= low - 2 * size - Math.abs(low) && y <= high + 2 * size + Math.abs(high) && !(data.log && y <= 0)) take(y);
    }
    if (data.log) return [low / 1.25, high * 1.25];
    const room = 0.06 * (high - low) || 0.05 * Math.abs(high) || 0.5;
    const ends = [low - room, high + room];
    if (data.limits) { ends[0] = Math.max(ends[0], data.limits[0] - 0.02); ends[1] = Math.min(ends[1], data.limits[1] + 0.02); }
    return ends[1] > ends[0] ? ends : [low - 0.5, high + 0.5];
  }

  function draw(panel) {
    const { data, svg } = panel, [left, top, right, bottom, height] = data.frame;
    const curves = (panel.curves = curvesOf(panel)), log = logarithmic(panel);
    const all = data.overlay ? extent(panel, curves) : data.x;
    const chosen = ofProgress === byProgress(panel) ? span : null;
    const range = chosen ? (log && chosen[0] <= 0 ? [Math.min(all[0], chosen[1] / 2), chosen[1]] : chosen) : all;
    const x = (panel.x = scale(range[0], range[1], left, right, log));
    const y = (panel.y = scale(...heights(data, curves, range), bottom, top, data.log));
    const group = (name) => { const found = svg.querySelector(`g.${name}`); found.replaceChildren(); return found; };
    const axes = group("axes"), plot = group("plot"), marks = group("marks");
    for (const value of y.ticks(4)) {
      const place = y.at(value).toFixed(1);
      element(axes, "path", { d: `M${left} ${place}H${right}`, stroke: "var(--rldk-grid)", fill: "none" });
      element(axes, "text", { x: left - 6, y: +place + 3.5, "text-anchor": "end", fill: "var(--rldk-soft)" }, short(value));
    }
    element(axes, "text", { x: left - 14, y: height - 9, "text-anchor": "end", fill: "var(--rldk-soft)" }, axisName(panel));
    for (const value of x.ticks(Math.max(2, Math.floor((right - left) / 90)))) {
      element(axes, "text", { x: x.at(value).toFixed(1), y: height - 9, "text-anchor": "middle", fill: "var(--rldk-soft)" }, short(value));
    }
    const clip = { "clip-path": `url(#clip-${panel.number})` };
    for (const curve of curves) {
      for (const band of curve.bands) {
        element(plot, "path", { d: area(curve.x, band, x, y), fill: colour(curve.colour), "fill-opacity": 0.16, ...clip });
      }
    }
    const levels = data.levels.filter(([value]) => value >= y.low && value <= y.high);
    for (const [value] of levels) {
      const place = y.at(value);
      element(plot, "path", { d: `M${left} ${place.toFixed(1)}H${right}`, stroke: "var(--rldk-ink)", "stroke-opacity": 0.65, "stroke-dasharray": "3 3", fill: "none" });
    }
    for (const curve of [...curves].reverse()) {
      const given = { d: line(curve, x, y), fill: "none", stroke: colour(curve.colour), "stroke-width": curve.style === "faint" ? 1.2 : 1.7, "stroke-linejoin": "round", "stroke-linecap": "round", ...clip };
      if (data.overlay && view.strong !== null) given[curve.colour === view.strong ? "stroke-width" : "stroke-opacity"] = curve.colour === view.strong ? 2.6 : 0.25;
      if (DASHES[curve.style]) given["stroke-dasharray"] = DASHES[curve.style];
      element(plot, "path", given);
      const broken = curve.x.filter((value, row) => curve.y[row] === null && value >= range[0] && value <= range[1]);
      const places = new Set(broken.map((value) => Math.round(x.at(value) / 8) * 8));
      if (places.size) element(plot, "path", { d: [...places].map((place) => `M${place - 3} ${top + 1}l6 6m0 -6l-6 6`).join(""), stroke: "var(--rldk-critical)", "stroke-width": 1.4, fill: "none" });
    }
    for (const [value, label] of levels) { // words lie over the curves, or nobody could read them
      element(plot, "text", { x: right - 2, y: y.at(value) - 4, "text-anchor": "end", fill: "var(--rldk-soft)", stroke: "var(--rldk-paper)", "stroke-width": 3, "paint-order": "stroke" }, label);
    }
    const taken = [];
    const order = { critical: 0, warning: 1, good: 2 };
    for (const [value, label, severity, words] of [...data.marks].sort((a, b) => order[a[2]] - order[b[2]] || a[0] - b[0])) {
      if (value < x.low || value > x.high) continue;
      const place = x.at(value), mark = element(marks, "g", { class: "mark" });
      element(mark, "title", {}, words);
      element(mark, "path", { d: `M${place.toFixed(1)} ${top - 1}V${bottom}`, stroke: TONES[severity], "stroke-width": 1.3, fill: "none", ...(severity === "good" ? { "stroke-dasharray": "2 3" } : {}) });
      if (taken.every((other) => Math.abs(other - place) >= 15)) {
        element(mark, "circle", { cx: place, cy: top - 7, r: 7, fill: TONES[severity] });
        element(mark, "text", { x: place, y: top - 3.4, "text-anchor": "middle", "font-size": 10, "font-weight": 700, fill: "var(--rldk-paper)" }, label);
        taken.push(place);
      }
    }
  }

  // One point beyond each end is kept, so that lines go on to the edge.
  function rows(xs, x) {
    let first = 0, last = xs.length - 1;
    while (first < last && xs[first + 1] < x.low) first++;
    while (last > first && xs[last - 1] > x.high) last--;
    return [first, last];
  }

  function line(curve, x, y) {
    const [first, last] = rows(curve.x, x), across = x.free;
    let path = "", open = false;
    for (let row = first; row <= last; row++) {
      const value = curve.y[row];
      if (value !== null) path += `${open ? "L" : "M"}${across(curve.x[row]).toFixed(1)} ${y.at(value).toFixed(1)}${open ? "" : "h0"}`;
      open = value !== null;
    }
    return path;
  }

  function area(xs, [lows, highs], x, y) {
    const [first, last] = rows(xs, x), across = x.free;
    let path = "", there = [], back = [];
    const close = () => { if (there.length) path += `M${[...there, ...back.reverse()].join("L")}Z`; there = []; back = []; };
    for (let row = first; row <= last; row++) {
      if (lows[row] === null || highs[row] === null) { close(); continue; }
      const place = across(xs[row]).toFixed(1);
      there.push(`${place} ${y.at(highs[row]).toFixed(1)}`);
      back.push(`${place} ${y.at(lows[row]).toFixed(1)}`);
    }
    close();
    return path;
  }

  function nearest(xs, value) {
    let low = 0, high = xs.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < value) low = middle; else high = middle; }
    return Math.abs(xs[low] - value) <= Math.abs(xs[high] - value) ? low : high;
  }

  function point(panel, value, height) {
    const { data, curves } = panel, [, top, , bottom] = data.frame;
    const step = curves.length && !data.overlay ? curves[0].x[nearest(curves[0].x, value)] : value;
    if (step === undefined || !curves.length || step < panel.x.low || step > panel.x.high) return;
    panel.at = step;
    const place = panel.x.at(step);
    panel.cursor.setAttribute("d", `M${place.toFixed(1)} ${top}V${bottom}`);
    panel.tip.replaceChildren();
    const head = document.createElement("div");
    const axis = axisName(panel);
    head.textContent = axis === "step" ? `step ${data.overlay ? Math.round(step) : step}` : axis === "hours" ? `hour ${short(step)}` : `${Math.round(step)} % of each run`;
    panel.tip.append(head);
    for (const [curve, row] of near(panel, step, height)) {
      const said = document.createElement("div"), swatch = document.createElement("i");
      swatch.style.background = colour(curve.colour);
      const bands = curve.bands.map((band) => ` (${short(band[0][row])} to ${short(band[1][row])})`).join("");
      said.append(swatch, `${curve.name} ${short(curve.y[row])}${bands}`);
      panel.tip.append(said);
    }
    panel.tip.hidden = false;
    const box = panel.svg.getBoundingClientRect(), around = panel.figure.getBoundingClientRect();
    const shown = (place / panel.width) * box.width + box.left - around.left;
    const beside = shown > around.width / 2 ? shown - panel.tip.offsetWidth - 12 : shown + 12;
    panel.tip.style.left = `${Math.max(2, Math.min(beside, around.width - panel.tip.offsetWidth - 2))}px`;
    panel.tip.style.top = "3.2rem";
  }

  // The curves at a place; of many runs those that go on there, the nearest to the pointer first.
  function near(panel, step, height) {
    const there = panel.curves.map((curve) => [curve, nearest(curve.x, step)]).filter(([curve]) => curve.x.length);
    if (!panel.data.overlay) return there.slice(0, 10);
    const reach = (panel.x.high - panel.x.low) / 50;
    const going = there.filter(([curve]) => step <= curve.x.at(-1) + reach && step >= curve.x[0] - reach);
    if (height !== undefined) {
      const away = ([curve, row]) => (curve.y[row] === null ? Infinity : Math.abs(panel.y.at(curve.y[row]) - height));
      going.sort((one, other) => away(one) - away(other));
    }
    return going.slice(0, 10);
  }

  function leave(panel) {
    panel.tip.hidden = true;
    panel.cursor.setAttribute("d", "");
  }

  function zoom(range, from) {
    span = range;
    ofProgress = Boolean(from) && byProgress(from);
    for (const panel of panels) { draw(panel); leave(panel); }
    for (const button of document.querySelectorAll("[data-reset]")) button.hidden = span === null;
  }

  // What most curves have in common is not in the page: places at equal distances, a solid line, no band.
  function unfold(curve) {
    if (curve.ends) {
      const [first, last] = curve.ends, count = curve.y.length - 1;
      curve.x = curve.y.map((_, row) => first + ((last - first) * row) / count);
    }
    curve.style ||= "solid";
    curve.bands ||= [];
  }

  function attach(figure, number) {
    const svg = figure.querySelector(":scope > svg"), source = figure.querySelector("script");
    const data = JSON.parse(source.textContent);
    for (const curve of [...data.curves, ...Object.values(data.groups || {}).flat()]) unfold(curve);
    const panel = { figure, svg, data, number, width: svg.viewBox.baseVal.width, at: null };
    const [left, top, right, bottom] = data.frame;
    const defs = element(svg, "defs", {}), clip = element(defs, "clipPath", { id: `clip-${number}` });
    element(clip, "rect", { x: left, y: top - 2, width: right - left, height: bottom - top + 4 });
    panel.chosen = element(svg, "rect", { y: top, height: bottom - top, x: 0, width: 0, fill: "var(--rldk-s0)", "fill-opacity": 0.15 });
    panel.cursor = element(svg, "path", { d: "", stroke: "var(--rldk-soft)", "stroke-width": 1, fill: "none" });
    panel.tip = document.createElement("div");
    panel.tip.className = "tip";
    panel.tip.hidden = true;
    panel.tip.setAttribute("role", "status");
    figure.append(panel.tip);
    figure.classList.add("live");
    panels.push(panel);
    panel.labels = new Set(data.curves.map((curve) => curve.label)).size;
    panel.curves = curvesOf(panel);
    panel.x = scale(data.x[0], data.x[1], left, right, logarithmic(panel));
    panel.y = scale(...heights(data, panel.curves, data.x), bottom, top, data.log);

    const under = (event) => {
      const box = svg.getBoundingClientRect();
      return Math.min(Math.max(((event.clientX - box.left) / box.width) * panel.width, left), right);
    };
    let from = null;
    svg.addEventListener("pointermove", (event) => {
      const place = under(event), box = svg.getBoundingClientRect();
      point(panel, panel.x.back(place), ((event.clientY - box.top) / box.height) * svg.viewBox.baseVal.height);
      if (from !== null) {
        panel.chosen.setAttribute("x", Math.min(from, place));
        panel.chosen.setAttribute("width", Math.abs(place - from));
      }
    });
    svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) { from = under(event); svg.setPointerCapture(event.pointerId); event.preventDefault(); figure.focus({ preventScroll: true }); } });
    svg.addEventListener("pointerup", (event) => {
      if (from === null) return;
      const place = under(event), ends = [from, place].sort((a, b) => a - b).map(panel.x.back);
      from = null;
      panel.chosen.setAttribute("width", 0);
      if (Math.abs(panel.x.at(ends[1]) - panel.x.at(ends[0])) > (right - left) / 100) zoom(ends, panel);
    });
    svg.addEventListener("pointerleave", () => { if (from === null) leave(panel); });
    svg.addEventListener("dblclick", () => zoom(null));
    figure.addEventListener("blur", () => leave(panel));
    figure.addEventListener("keydown", (event) => {
      const xs = panel.curves.length ? panel.curves[0].x : [];
      const row = panel.at === null ? xs.length - 1 : nearest(xs, panel.at);
      const middle = panel.at === null ? (left + right) / 2 : panel.x.at(panel.at), width = right - left;
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        const next = row + (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1);
        if (xs.length) point(panel, xs[Math.min(Math.max(next, 0), xs.length - 1)]);
      } else if (event.key === "+" || event.key === "=") {
        zoom([panel.x.back(middle - width / 4), panel.x.back(middle + width / 4)], panel);
      } else if (event.key === "-") {
        const ends = [panel.x.back(middle - width), panel.x.back(middle + width)], all = data.overlay ? extent(panel, panel.curves) : data.x;
        zoom(ends[0] <= all[0] && ends[1] >= all[1] ? null : ends, panel);
      } else if (event.key === "Escape") {
        zoom(null);
      } else return;
      event.preventDefault();
    });
  }

  document.querySelectorAll("figure.panel").forEach(attach);
  for (const button of document.querySelectorAll("[data-reset]")) button.addEventListener("click", () => zoom(null));
  const theme = document.querySelector("[data-theme-button]");
  if (theme) {
    const root = document.documentElement;
    const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
    const tell = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Show in ${dark() ? "light" : "dark"} colours`); };
    theme.hidden = false;
    theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; tell(); });
    tell();
  }
  let closed = [];
  addEventListener("beforeprint", () => {
    zoom(null);
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of closed) one.open = false; });
  return { panels, view, colour, COLOURS, draw, leave, zoom };
})();
