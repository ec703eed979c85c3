// The browser announces critical incidents of live runs, if the user wants that: each of them once, in all tabs together.

const CHOICE = 'rldk-browser-alerts';
const TOLD = 'rldk-told-incidents';
const MOST = 500;
const BELLS = new WeakMap();

// A browser that refuses to keep anything still announces, but forgets at the next visit.
const kept = {
  get(key) { try { return localStorage.getItem(key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
};

class Bell {
  constructor(parent) {
    this.element = document.createElement('div');
    this.element.className = 'rldk-bell';
    this.element.dataset.rldk = 'bell';
    parent.append(this.element);
    this.told = new Set();
  }

  get possible() { return 'Notification' in window && window.isSecureContext; }

  get on() { return this.possible && Notification.permission === 'granted' && kept.get(CHOICE) === 'on'; }

  take(data) {
    this.data = data;
    this.draw();
    if (this.on) this.announce();
  }

  draw() {
    this.element.replaceChildren();
    if (!this.data.live || !this.possible) return;
    if (Notification.permission === 'denied') {
      this.element.append('This browser blocks notifications of this page.');
      return;
    }
    if (this.on) this.element.append('This browser notifies you of critical incidents. ');
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = this.on ? 'Turn off' : 'Notify me in this browser';
    button.addEventListener('click', () => this.choose(!this.on));
    this.element.append(button);
  }

  async choose(wanted) {
    if (wanted && (await Notification.requestPermission()) === 'granted') {
      this.remember(this.data.incidents.map((incident) => incident.id)); // these are on the screen
      kept.set(CHOICE, 'on');
    } else {
      kept.set(CHOICE, 'off');
    }
    this.draw();
  }

  known() {
    try {
      return new Set([...this.told, ...JSON.parse(kept.get(TOLD) ?? '[]')]);
    } catch {
      return new Set(this.told);
    }
  }

  remember(ids) {
    ids.forEach((id) => this.told.add(id));
    kept.set(TOLD, JSON.stringify([...this.known()].slice(-MOST)));
  }

  announce() {
    const known = this.known();
    const fresh = this.data.incidents.filter((incident) => !known.has(incident.id));
    this.remember(fresh.map((incident) => incident.id));
    for (const { id, title, body } of fresh) {
      try {
        const shown = new Notification(title, { body, tag: id, requireInteraction: true });
        shown.onclick = () => { window.focus(); shown.close(); };
      } catch { /* a phone shows them through a service worker only */ }
    }
  }

  close() { this.element.remove(); }
}

export default function ({ data, parentElement }) {
  let bell = BELLS.get(parentElement);
  if (!bell) BELLS.set(parentElement, bell = new Bell(parentElement));
  bell.take(JSON.parse(new TextDecoder().decode(data)));
  return () => { bell.close(); BELLS.delete(parentElement); };
}
