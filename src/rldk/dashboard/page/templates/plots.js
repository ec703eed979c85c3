// Plots that are updated in place: each refresh brings new points, and only plots in view are drawn.

const NEAR = '400px';
const PLACES = new WeakMap();
const TOUCH = window.matchMedia('(pointer: coarse)');
const ENLARGE = {
  width: 24, height: 24,
  path: 'M4 10V4h6v2H6v4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z',
};

const PIN = { width: 24, height: 24, path: 'M15 3l6 6-4 1-3.5 3.5.5 4.5-2 2-4-4-5 5-1-1 5-5-4-4 2-2 4.5.5L14 6z' };
const ALL = new Set();

let library;

function plotly(address) {
  library ??= new Promise((done, failed) => {
    if (window.Plotly) { done(window.Plotly); return; }
    let script = document.getElementById('rldk-plotly');
    if (!script) {
      script = Object.assign(document.createElement('script'), { src: address, id: 'rldk-plotly' });
      document.head.append(script);
    }
    script.addEventListener('load', () => done(window.Plotly));
    script.addEventListener('error', failed);
  });
  return library;
}

const pointer = { down: false };
window.addEventListener('pointerdown', () => { pointer.down = true; }, true);
for (const kind of ['pointerup', 'pointercancel', 'blur']) window.addEventListener(kind, () => { pointer.down = false; }, true);

function isInSight(plot) {
  const { top, bottom } = plot.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

const rest = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

class Place {
  constructor(parent) {
    ALL.add(this);
    this.hidden = new Set();
    this.legend = document.createElement('div');
    this.legend.className = 'rldk-legend';
    this.legend.hidden = true;
    parent.append(this.legend);
    this.grid = document.createElement('div');
    this.grid.className = 'rldk-plots';
    parent.append(this.grid);
    this.plots = new Map();
    this.working = false;
    this.closed = false;
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.target.rldkNear = entry.isIntersecting;
      this.looked = true;
      this.work();
    }, { rootMargin: NEAR, scrollMargin: NEAR });
    this.sized = new ResizeObserver((entries) => {
      for (const { target, contentRect } of entries) this.resize(target, Math.round(contentRect.width));
    });
    this.enlarged = () => this.plots.forEach((plot) => this.resize(plot, plot.clientWidth));
    document.addEventListener('fullscreenchange', this.enlarged);
  }

  take({ address, figures, legend = [], pins = false }) {
    this.address = address;
    this.pins = pins;
    this.list(legend);
    const kept = new Set(figures.map((figure) => figure.key));
    for (const [key, plot] of this.plots) if (!kept.has(key)) this.remove(key, plot);
    figures.forEach((figure, number) => {
      const plot = this.plots.get(figure.key) ?? this.add(figure.key);
      if (this.grid.children[number] !== plot) this.grid.insertBefore(plot, this.grid.children[number] ?? null);
      if (plot.rldkStamp === figure.stamp) return;
      plot.rldkStamp = figure.stamp;
      plot.rldkFigure = figure;
      plot.setAttribute('aria-label', figure.alt);
    });
    this.work();
  }

  add(key) {
    const plot = document.createElement('div');
    plot.dataset.panel = key;
    plot.setAttribute('role', 'img');
    this.plots.set(key, plot);
    this.grid.append(plot);
    this.seen.observe(plot);
    this.sized.observe(plot);
    return plot;
  }

  remove(key, plot) {
    this.plots.delete(key);
    this.seen.unobserve(plot);
    this.sized.unobserve(plot);
    window.Plotly?.purge(plot);
    plot.remove();
  }

  // The runs of all plots in one legend: a click hides or shows one, a double click shows that one alone, or all again.
  list(legend) {
    const stamp = JSON.stringify(legend);
    if (stamp === this.listed) return;
    this.listed = stamp;
    this.legend.hidden = legend.length === 0;
    this.legend.replaceChildren(...legend.map(({ run, label, colour }) => {
      const button = Object.assign(document.createElement('button'), { type: 'button', title: label });
      const line = document.createElement('i');
      const name = document.createElement('span');
      line.style.background = colour;
      name.append(Object.assign(document.createElement('bdi'), { textContent: label }));
      button.dataset.run = run;
      button.append(line, name);
      button.addEventListener('click', () => this.toggle(run));
      button.addEventListener('dblclick', () => this.isolate(run, legend));
      return button;
    }));
    this.mark();
  }

  toggle(run) {
    if (!this.hidden.delete(run)) this.hidden.add(run);
    this.mark();
  }

  isolate(run, legend) {
    const others = legend.map((one) => one.run).filter((one) => one !== run);
    const alone = others.every((one) => this.hidden.has(one)) && !this.hidden.has(run);
    this.hidden = new Set(alone ? [] : others);
    this.mark();
  }

  mark() {
    for (const button of this.legend.children) button.setAttribute('aria-pressed', String(!this.hidden.has(button.dataset.run)));
    for (const plot of this.plots.values()) {
      if (plot.rldkHeight && plot.data) window.Plotly.restyle(plot, { visible: plot.data.map((trace) => this.shows(trace)) });
    }
  }

  shows(trace) {
    return this.hidden.has(trace.legendgroup) ? 'legendonly' : true;
  }

  // The next plot to draw: one in sight, then one that a little scrolling brings into sight.
  waiting() {
    const near = [...this.plots.values()].filter((plot) => plot.rldkFigure && plot.rldkNear);
    return near.find((plot) => isInSight(plot)) ?? near[0];
  }

  // One plot after the other, with time for the rest of the page in between, and none while the mouse button is down. All
  // of them together take at most half of the browser's time, so that a fast run does not block a slow machine.
  async work() {
    if (this.working) return;
    this.working = true;
    try {
      const Plotly = await plotly(this.address);
      while (this.waiting() && !this.closed) {
        const begun = performance.now();
        for (let plot = this.waiting(); plot && !this.closed; plot = this.waiting()) {
          while (pointer.down) await rest(100);
          const { spec } = plot.rldkFigure;
          plot.rldkFigure = null;
          await this.draw(Plotly, plot, spec);
          await rest(0);
          const next = this.waiting();
          if (!next || !isInSight(next)) this.grid.dataset.rldk = 'drawn';
        }
        this.grid.dataset.took = Math.round(performance.now() - begun);
        await Promise.race([rest(Math.min(2000, performance.now() - begun)), new Promise((done) => { this.hurry = done; })]);
      }
      if (this.looked) this.grid.dataset.rldk = 'drawn'; // also where all plots lie below the window
    } finally {
      this.working = false;
    }
  }

  async draw(Plotly, plot, spec) {
    const isNew = !plot.rldkHeight;
    plot.rldkHeight = spec.layout.height;
    if (document.fullscreenElement === plot) spec.layout.height = window.innerHeight;
    const enlarge = { name: 'Fullscreen', title: 'Fullscreen', icon: ENLARGE, click: () => this.enlarge(plot) };
    const pin = { name: 'Pin', title: 'Pin or unpin this panel', icon: PIN, click: () => this.pin(plot.dataset.panel) };
    const config = { ...spec.config, modeBarButtonsToAdd: this.pins ? [pin, enlarge] : [enlarge] };
    if (this.hidden.size) for (const trace of spec.data) trace.visible = this.shows(trace);
    if (TOUCH.matches) { // a finger on a plot scrolls the page; buttons zoom
      spec.layout.dragmode = false;
      config.modeBarButtonsToRemove = [...config.modeBarButtonsToRemove, 'toImage', 'zoom2d', 'pan2d'];
    }
    await Plotly.react(plot, spec.data, spec.layout, config);
    if (isNew) {
      plot.on('plotly_relayout', (event) => this.told(plot, event));
      plot.addEventListener('mousemove', (event) => cross(placeOf(plot, event)));
      plot.addEventListener('mouseleave', () => cross(null));
    }
  }

  enlarge(plot) {
    if (document.fullscreenElement) document.exitFullscreen();
    else plot.requestFullscreen();
  }

  resize(plot, width) {
    const before = plot.rldkWidth;
    plot.rldkWidth = width;
    if (!plot.rldkHeight || !width) return; // not drawn yet, or not shown
    const height = document.fullscreenElement === plot ? window.innerHeight : plot.rldkHeight;
    if (width !== before || plot.layout?.height !== height) window.Plotly.relayout(plot, { height, autosize: true });
  }

  told(plot, event) {
    this.hurry?.();
    if (event['xaxis.autorange']) { this.say({ all: true }); return; }
    const range = event['xaxis.range'] || [event['xaxis.range[0]'], event['xaxis.range[1]']];
    const axis = plot._fullLayout.xaxis;
    const unit = axis.type === 'date' ? 1000 : 1;
    const [low, high] = range.map((end) => (end === undefined ? NaN : Number(axis.r2c(end)) / unit)); // NaN: something else
    if (Number.isFinite(low) && Number.isFinite(high) && high > low) this.say({ low, high });
  }

  // A line where the mouse is in one of the plots.
  cross(point) {
    for (const plot of this.plots.values()) {
      const { xaxis, yaxis } = plot._fullLayout ?? {};
      if (!xaxis || !plot.rldkHeight) continue;
      const place = point && point.type === xaxis.type ? xaxis.d2p(point.x) : NaN;
      const shown = place >= 0 && place <= xaxis._length;
      if (shown && !plot.rldkCross) {
        plot.rldkCross = Object.assign(document.createElement('div'), { className: 'rldk-cross' });
        plot.style.position = 'relative';
        plot.append(plot.rldkCross);
      }
      if (!plot.rldkCross) continue;
      plot.rldkCross.hidden = !shown;
      if (!shown) continue;
      const where = { left: xaxis._offset + place, top: yaxis._offset, height: yaxis._length };
      for (const [name, pixels] of Object.entries(where)) plot.rldkCross.style[name] = `${pixels}px`;
    }
  }

  close() {
    this.closed = true;
    ALL.delete(this);
    this.legend.remove();
    document.removeEventListener('fullscreenchange', this.enlarged);
    this.seen.disconnect();
    this.sized.disconnect();
    for (const [key, plot] of [...this.plots]) this.remove(key, plot);
    this.grid.remove();
  }
}

// Where the mouse is on the x axis of a plot; nothing beside its curves.
function placeOf(plot, event) {
  const { xaxis } = plot._fullLayout ?? {};
  if (!xaxis) return null;
  const pixels = event.clientX - plot.getBoundingClientRect().left - xaxis._offset;
  return pixels >= 0 && pixels <= xaxis._length ? { x: xaxis.p2d(pixels), type: xaxis.type } : null;
}

// All plots of the page share the crosshair.
function cross(point) {
  for (const place of ALL) place.cross(point);
}

export default function ({ data, parentElement, setTriggerValue }) {
  let place = PLACES.get(parentElement);
  if (!place) PLACES.set(parentElement, place = new Place(parentElement));
  place.say = (span) => setTriggerValue('span', span);
  place.pin = (key) => setTriggerValue('pin', key);
  place.take(JSON.parse(new TextDecoder().decode(data)));
  return () => { place.close(); PLACES.delete(parentElement); };
}
