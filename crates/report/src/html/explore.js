// Sends the changed keys of a scenario to the server, and shows what it has found: a first look, then better ones. The
// server renders the results; this puts them in place of the old ones.
'use strict';
(() => {
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get('token');
  const ask = (path, body) => fetch(`${path}${path.includes('?') ? '&' : '?'}token=${token}`,
    body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) });

  // ---- Controls ----

  const knobs = [...document.querySelectorAll('.knob')];
  const part = (knob, name) => knob.querySelector(`.${name}`);
  const rounded = (value, whole) => whole ? Math.round(value) : Number(value.toPrecision(3));

  // The value of a control, as `--set` takes it.
  const valueOf = (knob) => {
    const number = part(knob, 'number');
    if (number) return `${number.value}${unitOf(knob)}`;
    if (part(knob, 'switch')) return String(part(knob, 'switch').checked);
    return (part(knob, 'choice') ?? part(knob, 'text')).value;
  };
  const unitOf = (knob) => {
    const unit = part(knob, 'unit')?.value ?? '';
    return unit === 'packets' ? ' packets' : unit;
  };

  const slideTo = (knob) => {
    const slider = part(knob, 'slider');
    if (!slider) return;
    const [low, high, value] = [Number(slider.dataset.low), Number(slider.dataset.high), Number(part(knob, 'number').value)];
    const share = slider.dataset.factors === 'true' ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    slider.value = Math.max(0, Math.min(1, share)) * 1000;
  };
  const readSlider = (knob) => {
    const slider = part(knob, 'slider');
    const [low, high, share] = [Number(slider.dataset.low), Number(slider.dataset.high), slider.value / 1000];
    const value = slider.dataset.factors === 'true' ? low * (high / low) ** share : low + (high - low) * share;
    part(knob, 'number').value = rounded(value, slider.dataset.whole === 'true');
  };

  const setKnob = (knob, value) => {
    const number = part(knob, 'number');
    if (number) {
      const [, digits, unit] = value.match(/^\s*([-\d._e+]+)\s*(.*)$/) ?? [];
      number.value = digits;
      if (part(knob, 'unit') && unit) part(knob, 'unit').value = unit;
      slideTo(knob);
    } else if (part(knob, 'switch')) part(knob, 'switch').checked = value === 'true';
    else (part(knob, 'choice') ?? part(knob, 'text')).value = value;
  };

  const changed = () => knobs.filter((knob) => valueOf(knob) !== knob.dataset.first);
  const settings = () => changed().map((knob) => `${knob.dataset.key}=${valueOf(knob)}`);

  let timer = null;
  const turn = () => {
    for (const knob of knobs) knob.classList.toggle('changed', valueOf(knob) !== knob.dataset.first);
    $('results').classList.add('old');
    clearTimeout(timer);
    timer = setTimeout(send, 120);
  };
  const send = async () => {
    const set = settings();
    history.replaceState(null, '', set.length ? `#${set.map(encodeURIComponent).join('&')}` : location.pathname + location.search);
    await ask('/turn', { set });
    watch();
  };

  for (const knob of knobs) {
    slideTo(knob);
    knob.dataset.first = valueOf(knob);
    knob.addEventListener('input', (event) => {
      if (event.target.matches('.slider')) readSlider(knob);
      else slideTo(knob);
      turn();
    });
  }
  $('reset').addEventListener('click', () => {
    for (const knob of knobs) setKnob(knob, knob.dataset.first);
    turn();
  });

  // ---- Results ----

  let version = -1;
  // By variant, the begin and the length of the window around the message that was delayed most.
  let delayed = {};
  let watching = false;
  const watch = async () => {
    if (watching) return;
    watching = true;
    for (;;) {
      let state;
      try {
        state = await (await ask(`/state?since=${version}`)).json();
      } catch {
        $('stage').textContent = 'The server has ended';
        $('stage-more').textContent = 'start `plimsoll explore` again';
        break;
      }
      show(state);
      if (!state.busy) break;
      await new Promise((done) => setTimeout(done, 200));
    }
    watching = false;
  };

  const show = (state) => {
    $('stage').textContent = state.stage;
    $('stage-more').textContent = state.more;
    $('progress').value = state.progress;
    $('progress').hidden = !state.busy;
    $('error').hidden = !state.error;
    $('error').textContent = state.error ?? '';
    delayed = state.delayed;
    $('replay-worst').disabled = !delayed[$('replay-variant').value];
    $('line-state').textContent = state.line_state;
    $('replay-state').textContent = state.replay_state;
    frame('line-result', '/line', state.line, 'The load line');
    frame('replay-result', '/replay', state.replay, 'The replay');
    if (state.html !== undefined) {
      version = state.version;
      replace(state.html);
      $('digest').textContent = state.digest;
      $('command').textContent = state.command;
      $('results').classList.toggle('old', !state.current);
    }
    document.documentElement.dataset.shown = `${state.version} ${state.current} ${state.busy}`;
  };

  // The page of a line or a replay, once it is there.
  const frame = (id, path, number, title) => {
    const place = $(id);
    if (place.dataset.number === String(number)) return;
    place.dataset.number = number;
    if (!number) return place.replaceChildren();
    const frame = document.createElement('iframe');
    frame.src = `${path}?number=${number}&token=${token}`;
    frame.title = title;
    // The frame is as high as its page.
    frame.addEventListener('load', () => {
      const page = frame.contentDocument.documentElement;
      page.dataset.embedded = '';
      page.dataset.theme = document.documentElement.dataset.theme ?? '';
      frame.style.height = `${page.scrollHeight + 2}px`;
    });
    place.replaceChildren(frame);
    return undefined;
  };

  // New results in place of the old ones; what was unfolded or chosen stays so.
  const replace = (html) => {
    const results = $('results');
    const open = [...results.querySelectorAll('details')].map((details) => details.open);
    const inputs = [...results.querySelectorAll('input')].map((input) => [input.name, input.checked]);
    results.innerHTML = html;
    [...results.querySelectorAll('details')].forEach((details, place) => { details.open = open[place] ?? false; });
    const now = [...results.querySelectorAll('input')];
    if (now.length === inputs.length) now.forEach((input, place) => { input.checked = inputs[place][1]; });
  };

  // ---- Line, replay, and what one keeps ----

  const submit = (id, path, body) => $(id).addEventListener('submit', async (event) => {
    event.preventDefault();
    const answer = await ask(path, body());
    if (!answer.ok) $(`${id.split('-')[0]}-state`).textContent = await answer.text();
    watch();
  });
  submit('line-form', '/line', () => ({ slo: $('slo').value }));
  submit('replay-form', '/replay', () =>
    ({ variant: $('replay-variant').value, from: $('replay-from').value, length: $('replay-for').value }));

  const toWorst = () => {
    const window = delayed[$('replay-variant').value];
    if (window) [$('replay-from').value, $('replay-for').value] = window;
  };
  $('replay-worst').addEventListener('click', toWorst);

  const kept = (words) => { $('kept').textContent = words; };
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); kept('Copied.'); } catch { kept(text); }
  };
  $('copy-link').addEventListener('click', () => copy(location.href));
  $('copy-command').addEventListener('click', () => copy($('command').textContent));
  $('save').addEventListener('click', () => {
    const link = document.createElement('a');
    link.href = `/scenario.toml?token=${token}`;
    link.download = 'explored.toml';
    link.click();
    kept('Saved as explored.toml.');
  });

  // A link has the changed keys behind its #.
  const follow = () => {
    const wanted = new Map(location.hash.slice(1).split('&').filter(Boolean).map((pair) => {
      const [key, ...value] = decodeURIComponent(pair).split('=');
      return [key, value.join('=')];
    }));
    for (const knob of knobs) setKnob(knob, wanted.get(knob.dataset.key) ?? knob.dataset.first);
  };
  addEventListener('hashchange', () => { follow(); turn(); });
  follow();
  if (matchMedia('(max-width: 900px)').matches) $('knobs').open = false;
  for (const knob of knobs) knob.classList.toggle('changed', valueOf(knob) !== knob.dataset.first);
  // A page that is opened again finds the results of the last one, unless its link asks for others.
  ask('/state').then((answer) => answer.json()).then((state) => {
    if (JSON.stringify(state.set) === JSON.stringify(settings())) watch();
    else send();
  }, watch);
})();
