// Plots that are updated in place: each refresh brings new points, and only plots in view are drawn.

const NEAR = '400px';
const PLACES = new WeakMap();
const TOUCH = window.matchMedia('(pointer: coarse)');
const ENLARGE = {
  width: 24, height: 24,
  path: 'M4 10V4h6v2H6v4zM14 4h6v6h-2V6h-4zM4 14h2v4h4v2H4zM18 14h2v6h-6v-2h4z',
};

let library;

function plotly(address) {
  library ??= new Promise((done, failed) => {
    if (window.Plotly) { done(window.Plotly); return; }
    let script = document.getElementById('rldk-plotly');
    if (!script) {
      script = Object.assign(document.createElement('script'), { src: address });
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

  take({ address, figures }) {
    this.address = address;
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
    const config = { ...spec.config, modeBarButtonsToAdd: [enlarge] };
    if (TOUCH.matches) { // a finger on a plot scrolls the page; buttons zoom
      spec.layout.dragmode = false;
      config.modeBarButtonsToRemove = [...config.modeBarButtonsToRemove, 'toImage', 'zoom2d', 'pan2d'];
    }
    await Plotly.react(plot, spec.data, spec.layout, config);
    if (isNew) plot.on('plotly_relayout', (event) => this.told(event));
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

  told(event) {
    this.hurry?.();
    if (event['xaxis.autorange']) { this.say({ all: true }); return; }
    const range = event['xaxis.range'] || [event['xaxis.range[0]'], event['xaxis.range[1]']];
    const [low, high] = range.map(Number); // a relayout of something else gives NaN
    if (Number.isFinite(low) && Number.isFinite(high) && high > low) this.say({ low, high });
  }

  close() {
    this.closed = true;
    document.removeEventListener('fullscreenchange', this.enlarged);
    this.seen.disconnect();
    this.sized.disconnect();
    for (const [key, plot] of [...this.plots]) this.remove(key, plot);
    this.grid.remove();
  }
}

export default function ({ data, parentElement, setTriggerValue }) {
  let place = PLACES.get(parentElement);
  if (!place) PLACES.set(parentElement, place = new Place(parentElement));
  place.say = (span) => setTriggerValue('span', span);
  place.take(JSON.parse(new TextDecoder().decode(data)));
  return () => { place.close(); PLACES.delete(parentElement); };
}
