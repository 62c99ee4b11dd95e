// Tooltips, arrow keys, files and dark colours for the figures of a report. The figures are drawn already: each SVG has
// transparent targets whose `data-tip` is the text to show, in the order in which the arrow keys visit them. The first
// line of a text is its heading; the others are `class TAB name TAB value`.
'use strict';
(() => {
  const make = (name, className, text) => {
    const element = document.createElement(name);
    element.className = className;
    if (text) element.textContent = text;
    return element;
  };
  const tip = make('div', 'tip');
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  let shown = null;

  const hide = () => {
    shown?.classList.remove('on');
    shown = null;
    tip.hidden = true;
  };

  // Shows the tooltip of a target beside the pointer, or beside the target's middle.
  const show = (target, pointer) => {
    if (shown !== target) {
      hide();
      shown = target;
      target.classList.add('on');
      const [head, ...rows] = target.dataset.tip.split('\n');
      tip.replaceChildren(make('strong', '', head), ...rows.map((row) => {
        const [color, name, value] = row.split('\t');
        const line = make('div', '');
        line.append(make('i', color), make('span', '', name), make('b', '', value));
        return line;
      }));
    }
    const plot = target.closest('.plot');
    if (tip.parentElement !== plot) plot.append(tip);
    tip.hidden = false;
    const [around, box] = [plot.getBoundingClientRect(), target.getBoundingClientRect()];
    const x = (pointer ? pointer.clientX : box.left + box.width / 2) - around.left;
    const y = (pointer ? pointer.clientY : box.top + Math.min(box.height / 2, 40)) - around.top;
    const room = around.width - tip.offsetWidth;
    const left = x + 16 > room ? x - tip.offsetWidth - 16 : x + 16;
    tip.style.left = `${Math.max(0, Math.min(left, room))}px`;
    // Under a finger the tooltip would not be seen.
    const above = pointer?.pointerType === 'touch' ? tip.offsetHeight + 24 : 20;
    tip.style.top = `${y - above}px`;
  };

  const follow = (event) => {
    const target = event.target.closest?.('.target');
    if (target) show(target, event);
    else if (shown) hide();
  };
  document.addEventListener('pointermove', (event) => { if (event.pointerType !== 'touch') follow(event); });
  document.addEventListener('pointerdown', follow);
  document.documentElement.addEventListener('pointerleave', hide);
  document.addEventListener('focusout', hide);

  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hide();
    const figure = event.target.closest?.('.plot svg');
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!figure || !(step || event.key === 'Home' || event.key === 'End')) return;
    const targets = [...figure.querySelectorAll('.target')];
    if (!targets.length) return;
    event.preventDefault();
    const at = targets.indexOf(shown);
    const last = targets.length - 1;
    const next = event.key === 'Home' || at < 0 && step > 0 ? 0
      : event.key === 'End' || at < 0 ? last : Math.max(0, Math.min(at + step, last));
    show(targets[next], null);
  });

  const draw = (name, attributes, text) => {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    if (text) element.textContent = text;
    return element;
  };
  const isShown = (element) => !element.closest('figure') || element.tagName === 'FIGURE'
    || getComputedStyle(element).display !== 'none' && isShown(element.parentElement);
  const COLORS = '.ink { fill: #1d2430 } .faint { fill: #5b6472 } .grid { stroke: #e3e6eb } .base { stroke: #5b6472 } '
    + '.on-mark { fill: #ffffff }';
  const PAD = 18;

  // Returns a figure as the text of an SVG file in light colours: its title, its note, its legend, and the drawing in
  // its wide layout at the chosen point and view. What is switched off is left out.
  const fileOf = (figure, title) => {
    const drawings = [...figure.querySelectorAll('.plot svg.wide')];
    const source = drawings.find((drawing) => isShown(drawing.parentElement)) ?? drawings[0];
    const drawing = source.cloneNode(true);
    const groups = drawing.querySelectorAll('g');
    source.querySelectorAll('g').forEach((group, n) => {
      if (getComputedStyle(group).display === 'none') groups[n].remove();
    });
    drawing.querySelectorAll('.target').forEach((target) => target.remove());
    ['tabindex', 'class'].forEach((name) => drawing.removeAttribute(name));
    const [width, height] = ['width', 'height'].map((side) => Number(source.getAttribute(side)));
    const font = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';
    const file = draw('svg', { 'font-family': font, 'font-size': 12 });
    file.append(draw('title', {}, title), draw('style', {}, COLORS));
    const card = draw('rect', { x: 0.5, y: 0.5, rx: 8, fill: '#ffffff', stroke: '#d5d9e0' });
    file.append(card);
    const pen = document.createElement('canvas').getContext('2d');
    let top = PAD;
    const write = (text, size, style) => {
      pen.font = `${style['font-weight'] ?? 400} ${size}px ${font}`;
      let line = '';
      for (const word of [...text.split(' '), null]) {
        const longer = line ? `${line} ${word}` : word;
        if (line && (word === null || pen.measureText(longer).width > width)) {
          top += size + 4;
          file.append(draw('text', { x: PAD, y: top, 'font-size': size, ...style }, line));
          line = word;
        } else {
          line = longer;
        }
      }
    };
    write(title, 15, { class: 'ink', 'font-weight': 600 });
    write(figure.querySelector('.note')?.textContent ?? '', 12, { class: 'faint' });
    const labels = [...figure.querySelectorAll('.keys label')].filter((label) => label.querySelector('input').checked);
    pen.font = `12px ${font}`;
    let left = PAD;
    top += labels.length ? 24 : 0;
    for (const label of labels) {
      const glyph = label.querySelector('svg').cloneNode(true);
      const beside = Number(glyph.getAttribute('width')) + 6;
      const room = beside + pen.measureText(label.textContent).width + 18;
      if (left > PAD && left + room > PAD + width) {
        left = PAD;
        top += 18;
      }
      Object.entries({ x: left, y: top - 10 }).forEach(([key, value]) => glyph.setAttribute(key, value));
      file.append(glyph, draw('text', { x: left + beside, y: top, class: 'ink' }, label.textContent));
      left += room;
    }
    top += 12;
    Object.entries({ x: PAD, y: top }).forEach(([key, value]) => drawing.setAttribute(key, value));
    file.append(drawing);
    const size = { width: width + 2 * PAD, height: Math.ceil(top + height + PAD / 2) };
    Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` })
      .forEach(([key, value]) => file.setAttribute(key, value));
    Object.entries({ width: size.width - 1, height: size.height - 1 })
      .forEach(([key, value]) => card.setAttribute(key, value));
    return new XMLSerializer().serializeToString(file);
  };

  // Beside each caption, a button that downloads the figure.
  for (const figure of document.querySelectorAll('figure')) {
    const caption = figure.querySelector('figcaption');
    if (!caption || !figure.querySelector('.plot svg.wide')) continue;
    const title = caption.textContent;
    const button = make('button', 'save', 'SVG');
    button.type = 'button';
    button.title = 'Download this figure as SVG';
    button.addEventListener('click', () => {
      const link = make('a', '');
      link.download = `${figure.id}.svg`;
      link.href = URL.createObjectURL(new Blob([fileOf(figure, title)], { type: 'image/svg+xml' }));
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    });
    caption.append(button);
  }

  const root = document.documentElement;
  const theme = document.getElementById('theme');
  const isDark = () => (root.dataset.theme
    || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const label = () => { theme.textContent = isDark() ? 'Light' : 'Dark'; };
  try {
    const kept = localStorage.getItem('plimsoll-theme');
    if (kept) root.dataset.theme = kept;
  } catch { /* A file may have no storage: then the system decides. */ }
  label();
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    try { localStorage.setItem('plimsoll-theme', root.dataset.theme); } catch { /* As above. */ }
    label();
  });
  root.dataset.drawn = document.querySelectorAll('figure .plot').length;
})();
