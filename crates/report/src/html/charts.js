// Draws the figures of a report from the JSON in the page: no library, no network.
// A figure is described by `chart.rs`; what is drawn here is drawn the same way by `svg/`.
'use strict';
(() => {
  const page = JSON.parse(document.getElementById('data').textContent);
  const state = { point: 0 };

  // ---- Elements -------------------------------------------------------------------------------
  const make = (space) => (name, attributes = {}, ...inside) => {
    const element = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  };
  const svg = make('http://www.w3.org/2000/svg');
  const html = make(null);
  const color = (name) => `var(--${name})`;
  const px = (value) => Math.round(value * 10) / 10;

  // As `Stroke::dashes` has them.
  const DASHES = { dashed: '6 4', dotted: '1.5 3.5' };

  // ---- Numbers --------------------------------------------------------------------------------
  const TIMES = [['ns', 1e-3], ['us', 1], ['ms', 1e3], ['s', 1e6]];
  const RATES = [['kb/s', 1e-3], ['Mb/s', 1], ['Gb/s', 1e3], ['Tb/s', 1e6]];
  const SIZES = [['B', 1], ['KB', 1e3], ['MB', 1e6], ['GB', 1e9]];
  const unitsOf = { time: TIMES, rate: RATES, size: SIZES };
  const unitFor = (value, units) =>
    [...units].reverse().find(([, size]) => Math.abs(value) >= size * (1 - 1e-9)) || units[0];
  const significant = (value) => {
    const size = Math.abs(value);
    if (size === 0) return '0';
    if (size < 1e-4) return value.toExponential(1);
    const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    return value.toLocaleString('en', { minimumFractionDigits: decimals, maximumFractionDigits: decimals,
      useGrouping: size >= 9999.5 });
  };
  const written = (value, format) => {
    if (unitsOf[format]) {
      const [name, size] = unitFor(value === 0 ? 1 : value, unitsOf[format]);
      return `${significant(value / size)} ${name}`;
    }
    if (format === 'percent') {
      // Near the whole, two digits of what is missing to it: 99.71 %.
      const missing = value < 1 ? Math.ceil(-Math.log10(1 - value)) - 1 : 0;
      return value > 0.99 ? `${+(value * 100).toFixed(Math.max(missing, 0))} %` : `${+(value * 100).toPrecision(3)} %`;
    }
    return significant(value) + (format === 'ratio' ? 'x' : '');
  };

  // ---- Axes -----------------------------------------------------------------------------------
  const fit = (axis, values, from, to) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (Number.isFinite(value) && (!axis.log || value > 0)) {
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (low > high) [low, high] = axis.log ? [1, 10] : [0, 1];
    const room = axis.log ? 0 : high > low ? 0.04 * (high - low) : 0.5 * Math.max(Math.abs(high), 1);
    low = axis.min ?? (axis.log ? low / 1.15 : low - room);
    high = axis.max ?? (axis.log ? high * 1.15 : high + room);
    if (high <= low) high = axis.log ? low * 10 : low + 1;
    const unit = !axis.log && unitsOf[axis.format] ? unitFor(high, unitsOf[axis.format]) : null;
    const share = (value) => axis.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    const back = (part) => axis.log ? low * Math.pow(high / low, part) : low + part * (high - low);
    const clamp = (value) => Math.min(Math.max(value, low), high);
    return {
      place: (value) => from + share(clamp(value)) * (to - from),
      value: (place) => clamp(back((place - from) / (to - from))),
      base: () => from + share(axis.log ? low : clamp(0)) * (to - from),
      label: unit ? `${axis.label} (${unit[0]})` : axis.format === 'percent' && !axis.log ? `${axis.label} (%)` : axis.label,
      ticks: (wanted) => axis.log ? logTicks(axis, low, high, wanted) : linearTicks(axis, low, high, unit, wanted),
    };
  };
  const linearTicks = (axis, low, high, unit, wanted) => {
    const size = unit ? unit[1] : axis.format === 'percent' ? 0.01 : 1;
    const raw = (high - low) / size / Math.max(wanted, 1);
    const magnitude = Math.pow(10, Math.floor(Math.log10(raw) + 1e-9));
    const step = magnitude * ([1, 2, 5].find((one) => raw / magnitude <= one + 1e-9) || 10);
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let i = Math.ceil(low / size / step - 1e-9); i <= Math.floor(high / size / step + 1e-9); i += 1) {
      const text = (i * step || 0).toLocaleString('en', { minimumFractionDigits: decimals,
        maximumFractionDigits: decimals, useGrouping: Math.abs(i * step) >= 1e4 });
      ticks.push({ value: i * step * size, label: text + (axis.format === 'ratio' ? 'x' : '') });
    }
    return ticks;
  };
  const logTicks = (axis, low, high, wanted) => {
    const [first, last] = [Math.floor(Math.log10(low) + 1e-9), Math.ceil(Math.log10(high) - 1e-9)];
    // Labels at 2 and 5 where there is room for three a decade.
    const labelled = 3 * Math.log10(high / low) <= wanted + 1 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil((last - first) / Math.max(wanted, 1)));
    const short = (value) => `${+value.toPrecision(6)}`;
    const ticks = [];
    for (let decade = first; decade <= last; decade += 1) {
      for (let mantissa = 1; mantissa < 10; mantissa += 1) {
        const value = mantissa * Math.pow(10, decade);
        if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
        let label = '';
        if (labelled.includes(mantissa) && decade % every === 0) {
          if (unitsOf[axis.format]) {
            const [name, size] = unitFor(value, unitsOf[axis.format]);
            label = `${short(value / size)} ${name}`;
          } else {
            label = axis.format === 'percent' ? `${short(value * 100)} %` : short(value) + (axis.format === 'ratio' ? 'x' : '');
          }
        }
        ticks.push({ value, label });
      }
    }
    return ticks;
  };

  // ---- The parts of every figure --------------------------------------------------------------
  const text = (x, y, content, attributes = {}) => svg('text', { x: px(x), y: px(y), ...attributes }, content);
  const path = (d, attributes = {}) => svg('path', { d, ...attributes });
  const marker = (x, y, kind, fill, hollow) => {
    const d = ['M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z', 'M-3.2 -3.2h6.4v6.4h-6.4z',
      'M0 -4.4l4 7h-8z', 'M0 -4.4l4.4 4.4l-4.4 4.4l-4.4 -4.4z'][kind % 4];
    return path(d, { transform: `translate(${px(x)} ${px(y)})`, stroke: fill, 'stroke-width': 1.2,
      fill: hollow ? 'var(--card)' : fill });
  };
  const errorBar = (x, low, high, stroke) => path(
    `M${px(x)} ${px(low)}V${px(high)}M${px(x - 4)} ${px(low)}h8M${px(x - 4)} ${px(high)}h8`,
    { stroke, 'stroke-width': 1.4, fill: 'none' });
  const joined = (places, steps) => places.map(([x, y], i) =>
    i === 0 ? `M${px(x)} ${px(y)}` : steps ? `H${px(x)}V${px(y)}` : `L${px(x)} ${px(y)}`).join('');
  const textWidth = (() => {
    const context = document.createElement('canvas').getContext('2d');
    return (content) => {
      if (!context) return content.length * 7;
      context.font = '12px system-ui, sans-serif';
      return context.measureText(content).width;
    };
  })();

  const drawY = (root, box, scale) => {
    for (const { value, label } of scale.ticks(6)) {
      if (!label) continue;
      const y = scale.place(value);
      root.append(path(`M${box.left} ${px(y)}H${px(box.right)}`, { class: 'grid' }),
        text(box.left - 8, y + 4, label, { class: 'tick', 'text-anchor': 'end' }));
    }
    const middle = (box.top + box.bottom) / 2;
    root.append(text(14, middle, scale.label, { class: 'axis', 'text-anchor': 'middle',
      transform: `rotate(-90 14 ${px(middle)})` }));
  };
  const drawX = (root, box, scale, axis) => {
    root.append(path(`M${box.left} ${box.bottom}H${px(box.right)}`, { class: 'base' }));
    const places = axis.categories?.map((label, value) => ({ value, label }));
    const skip = places ? Math.ceil(Math.max(...places.map(({ label }) => textWidth(label) + 10)) * places.length
      / (box.right - box.left)) : 1;
    for (const { value, label } of places || scale.ticks(Math.floor((box.right - box.left) / 90))) {
      const x = scale.place(value);
      if (!places) root.append(path(`M${px(x)} ${box.bottom}v${label ? 6 : 3}`, { class: 'base' }));
      if (value % skip && places) continue;
      root.append(text(x, box.bottom + 19, label, { class: 'tick', 'text-anchor': 'middle' }));
    }
    root.append(text((box.left + box.right) / 2, box.bottom + 37, scale.label, { class: 'axis', 'text-anchor': 'middle' }));
  };
  const boxFor = (width, height, scaleOf) => {
    const box = { left: 40, right: width - 18, top: 10, bottom: height - 44 };
    const labels = scaleOf(box).ticks(6).map(({ label }) => textWidth(label));
    box.left = Math.ceil(34 + Math.max(0, ...labels));
    return box;
  };
  const placed = (axis) => axis.categories
    ? { ...axis, min: -0.5, max: axis.categories.length - 0.5 } : axis;

  // ---- The kinds of figure: each returns its height and what a pointer reads ------------------
  const kinds = {
    lines(figure, chart, root, width) {
      const tail = figure.view === 1;
      const yAxis = tail ? { label: 'share that took longer', format: 'percent', log: true, max: 1 } : chart.y;
      const shown = chart.series.map((line, kind) => ({ ...line, kind })).filter((line) => !figure.hidden.has(line.name))
        .map((line) => tail ? { ...line, y: line.y.map((share) => 1 - share), around: null } : line);
      const yValues = shown.flatMap((line) => [...line.y.filter((y) => !tail || y > 1e-12),
        ...(line.around ? [...line.around.low, ...line.around.high] : [])]).filter((y) => y !== null);
      const height = 320;
      const scaleY = (box) => fit(yAxis, yValues, box.bottom, box.top);
      const box = boxFor(width, height, scaleY);
      const y = scaleY(box);
      const xAxis = placed(chart.x);
      const x = fit(xAxis, shown.flatMap((line) => line.x), box.left, box.right);
      drawY(root, box, y);
      drawX(root, box, x, chart.x);
      for (const line of shown) {
        const stroke = color(line.color);
        const places = line.x.map((value, i) => [value, line.y[i]]).filter(([, value]) => !tail || value > 1e-12)
          .map(([across, up]) => [x.place(across), y.place(up)]);
        if (line.around?.shape === 'band') {
          const edge = (side) => line.x.map((value, i) => [x.place(value), y.place(side[i] ?? line.y[i])]);
          root.append(path(`${joined([...edge(line.around.high), ...edge(line.around.low).reverse()])}z`,
            { fill: stroke, 'fill-opacity': 0.16 }));
        } else if (line.around) {
          line.x.forEach((value, i) => {
            const [low, high] = [line.around.low[i], line.around.high[i]];
            if (low !== null && high !== null) root.append(errorBar(x.place(value), y.place(low), y.place(high), stroke));
          });
        }
        if (!line.apart) root.append(path(joined(places, line.steps), { stroke, fill: 'none', 'stroke-width': 2,
          'stroke-linejoin': 'round', ...(line.stroke ? { 'stroke-dasharray': DASHES[line.stroke] } : {}) }));
        if (line.apart || places.length <= 30 && !line.stroke) places.forEach(([across, up]) => root.append(marker(across, up, line.kind, stroke)));
      }
      return { height, read: chart.read === 'at-y' ? readAtY(chart, shown, box, x, y, tail) : readAtX(chart, shown, box, x, y) };
    },

    bars(figure, chart, root, width) {
      const shown = chart.series.filter((series) => !figure.hidden.has(series.name));
      const values = shown.flatMap((series) => series.values.filter(Boolean).flatMap((w) => [w.value, w.low, w.high]))
        .filter((value) => value !== undefined && value !== null);
      const height = 320;
      // A bar needs a foot: on a logarithmic axis the decade below the least.
      const least = Math.min(...values.filter((value) => value > 0));
      const foot = chart.y.log && Number.isFinite(least) ? { min: Math.pow(10, Math.floor(Math.log10(least / 1.3))) } : {};
      const scaleY = (box) => fit({ ...foot, ...chart.y }, values, box.bottom, box.top);
      const box = boxFor(width, height, scaleY);
      const y = scaleY(box);
      const axis = placed({ label: '', format: 'number', categories: chart.groups });
      const x = fit(axis, [], box.left, box.right);
      drawY(root, box, y);
      drawX(root, box, x, axis);
      const bar = Math.min(46, 0.8 * (box.right - box.left) / chart.groups.length / Math.max(shown.length, 1));
      shown.forEach((series, number) => series.values.forEach((whisker, group) => {
        if (!whisker) return;
        const left = x.place(group) + (number - shown.length / 2) * bar;
        const [top, base] = [y.place(whisker.value), y.base()];
        root.append(svg('rect', { x: px(left + 1), y: px(Math.min(top, base)), width: px(bar - 2),
          height: px(Math.abs(base - top)), rx: 1.5, fill: color(series.color) },
        svg('title', {}, `${series.name}, ${chart.groups[group]}: ${written(whisker.value, chart.y.format)}`)));
        if (whisker.low != null && whisker.high != null) {
          root.append(errorBar(left + bar / 2, y.place(whisker.low), y.place(whisker.high), 'var(--ink)'));
        }
      }));
      return { height };
    },

    stacked(figure, chart, root, width) {
      const parts = chart.parts.map((part, i) => ({ ...part, i })).filter((part) => !figure.hidden.has(part.name));
      const sum = (row) => parts.reduce((total, part) => total + row.values[part.i], 0);
      const share = figure.view === 0;
      const axis = share ? { label: 'share of the time', format: 'percent', min: 0, max: 1 } : chart.x;
      const { box, x, places, height } = rowsBox(root, chart.rows, axis, chart.rows.map(sum), width, 74);
      chart.rows.forEach((row, number) => {
        const total = sum(row);
        let so = 0;
        for (const part of parts) {
          const value = row.values[part.i] / (share && total > 0 ? total : 1);
          const [left, right] = [x.place(so), x.place(so + value)];
          so += value;
          if (right - left < 0.1) continue;
          root.append(svg('rect', { x: px(left), y: places[number] + 4, width: px(right - left), height: 18,
            fill: color(part.color), class: 'part' }));
        }
        root.append(text(x.place(so) + 6, places[number] + 17, written(total, chart.x.format), { class: 'tick' }));
      });
      const read = (place) => {
        const number = rowAt(places, place.y);
        if (number < 0) return null;
        const row = chart.rows[number];
        const total = sum(row);
        return { line: `M${box.left} ${places[number]}h${px(box.right - box.left)}v26H${box.left}z`,
          x: box.right * 0.5, y: places[number], head: `${row.label}, ${row.group}: ${written(total, chart.x.format)}`,
          rows: parts.filter((part) => row.values[part.i] > 0).map((part) => [part.color, part.name,
            `${written(row.values[part.i], chart.x.format)}, ${written(row.values[part.i] / total, 'percent')}`]) };
      };
      return { height, read: { at: read, box } };
    },

    dots(figure, chart, root, width) {
      const values = chart.rows.flatMap((row) => [row.value, row.low, row.high])
        .filter((value) => value !== undefined && value !== null);
      const { box, x, places, height } = rowsBox(root, chart.rows, chart.x, [...values, chart.reference], width, 14, 20);
      const zero = x.place(chart.reference);
      root.append(path(`M${px(zero)} ${box.top}V${box.bottom}`, { class: 'base' }),
        text(zero - 8, box.top - 7, `← ${chart.sides[0]}`, { class: 'axis', 'text-anchor': 'end' }),
        text(zero + 8, box.top - 7, `${chart.sides[1]} →`, { class: 'axis' }));
      chart.rows.forEach((row, number) => {
        const [y, stroke] = [places[number] + 13, color(row.color)];
        if (row.low != null && row.high != null) {
          root.append(path(`M${px(x.place(row.low))} ${y}H${px(x.place(row.high))}`, { stroke, 'stroke-width': 2.4,
            'stroke-linecap': 'round' }));
        }
        root.append(marker(x.place(row.value), y, +row.color.slice(1) || 0, stroke, row.hollow));
      });
      const read = (place) => {
        const number = rowAt(places, place.y);
        if (number < 0) return null;
        const row = chart.rows[number];
        const interval = row.low != null ? `${written(row.low, 'ratio')} to ${written(row.high, 'ratio')}` : 'no interval';
        return { line: `M${box.left} ${places[number] + 13}H${px(box.right)}`, x: x.place(row.value), y: places[number],
          head: `${row.group}: ${row.label}`, rows: [[row.color, written(row.value, chart.x.format), interval]] };
      };
      return { height, read: { at: read, box } };
    },
  };

  const rowAt = (places, y) => places.findIndex((top) => y >= top && y < top + 26);
  const rowsBox = (root, rows, axis, values, width, right, above = 0) => {
    const wide = Math.max(40, ...rows.map((row) => Math.max(textWidth(row.label), textWidth(row.group) - 10)));
    const box = { left: Math.ceil(wide + 14), right: width - right, top: 4 + above };
    let [top, group] = [box.top, ''];
    const places = rows.map((row) => {
      if (row.group !== group) {
        root.append(text(0, top + 17, row.group, { class: 'group' }));
        group = row.group;
        top += 24;
      }
      root.append(text(box.left - 8, top + 17, row.label, { class: 'row', 'text-anchor': 'end' }));
      top += 26;
      return top - 26;
    });
    box.bottom = top + 4;
    const x = fit(axis, values, box.left, box.right);
    const grid = svg('g');
    for (const { value, label } of x.ticks(Math.floor((box.right - box.left) / 90))) {
      if (!label) continue;
      grid.append(path(`M${px(x.place(value))} ${box.top}V${box.bottom}`, { class: 'grid' }),
        text(x.place(value), box.bottom + 17, label, { class: 'tick', 'text-anchor': 'middle' }));
    }
    grid.append(text((box.left + box.right) / 2, box.bottom + 36, x.label, { class: 'axis', 'text-anchor': 'middle' }));
    root.prepend(grid);
    return { box, x, places, height: box.bottom + 44 };
  };

  // ---- Reading values off a figure ------------------------------------------------------------
  const readAtY = (chart, shown, box, x, y, tail) => ({ box, at: (place) => {
    const up = y.value(Math.min(Math.max(place.y, box.top), box.bottom));
    const share = tail ? 1 - up : up;
    const rows = shown.map((line) => {
      const i = line.y.findIndex((value) => (tail ? 1 - value : value) >= share - 1e-12);
      return [line.color, line.name, written(line.x[i < 0 ? line.x.length - 1 : i], chart.x.format)];
    });
    return { line: `M${box.left} ${px(y.place(up))}H${px(box.right)}`, x: place.x, y: y.place(up),
      head: `${written(share, 'percent')} took at most`, rows };
  } });
  const readAtX = (chart, shown, box, x, y) => ({ box, at: (place) => {
    const across = x.value(Math.min(Math.max(place.x, box.left), box.right));
    const nearest = (line) => line.x.reduce((best, value, i) =>
      Math.abs(value - across) < Math.abs(line.x[best] - across) ? i : best, 0);
    // A dashed line is a reference: its places are no measurements.
    const known = shown.filter((line) => line.x.length && !line.stroke);
    if (!known.length) return null;
    const off = (line) => Math.abs(line.x[nearest(line)] - across);
    const closest = known.reduce((best, line) => off(line) < off(best) ? line : best);
    const at = closest.x[nearest(closest)];
    const rows = known.map((line) => {
      const i = nearest(line);
      const [low, high] = [line.around?.low[i] ?? null, line.around?.high[i] ?? null];
      const range = low !== null && high !== null ? ` (${written(low, chart.y.format)} to ${written(high, chart.y.format)})` : '';
      const elsewhere = Math.abs(x.place(line.x[i]) - x.place(at)) > 12 ? ` at ${written(line.x[i], chart.x.format)}` : '';
      return [line.color, line.name, written(line.y[i], chart.y.format) + range + elsewhere];
    });
    const head = chart.x.categories ? chart.x.categories[at] : `${chart.x.label}: ${written(at, chart.x.format)}`;
    return { line: `M${px(x.place(at))} ${box.top}V${box.bottom}`, x: x.place(at), y: place.y, head, rows };
  } });

  const showTip = (figure, place) => {
    const found = figure.read?.at(place);
    figure.cursor.setAttribute('d', found ? found.line : 'M0 0');
    figure.tip.hidden = !found;
    if (!found) return;
    figure.place = place;
    figure.tip.replaceChildren(html('strong', {}, found.head), ...found.rows.map(([dot, name, value]) => {
      const row = html('div', {}, html('i', { style: `background:${color(dot)}` }), html('span', {}, name), html('b', {}, value));
      return row;
    }));
    const room = figure.plot.clientWidth - figure.tip.offsetWidth - 8;
    const beside = found.x + 16 > room ? found.x - figure.tip.offsetWidth - 16 : found.x + 16;
    figure.tip.style.left = `${Math.max(0, Math.min(beside, room))}px`;
    figure.tip.style.top = `${Math.max(0, found.y - 20)}px`;
  };
  const hideTip = (figure) => {
    figure.tip.hidden = true;
    figure.cursor?.setAttribute('d', 'M0 0');
  };

  // ---- A figure on the page -------------------------------------------------------------------
  const draw = (figure) => {
    const chart = figure.charts[Math.min(state.point, figure.charts.length - 1)];
    const width = Math.max(figure.plot.clientWidth, 280);
    const root = svg('svg', { role: 'img', tabindex: 0, 'aria-label': `${chart.title}. ${chart.note}` });
    try {
      const { height, read } = kinds[chart.kind](figure, chart, root, width);
      figure.cursor = path('M0 0', { class: 'cursor' });
      root.append(figure.cursor);
      figure.read = read;
      root.setAttribute('viewBox', `0 0 ${width} ${px(height)}`);
      root.setAttribute('width', width);
      root.setAttribute('height', px(height));
      figure.plot.replaceChildren(root, figure.tip);
      listen(figure, root);
    } catch (error) {
      figure.plot.replaceChildren(html('p', { class: 'chart-error' }, `This figure could not be drawn: ${error.message}`));
    }
  };
  const listen = (figure, root) => {
    const placeOf = (event) => {
      const bounds = root.getBoundingClientRect();
      return { x: event.clientX - bounds.left, y: event.clientY - bounds.top };
    };
    root.addEventListener('pointermove', (event) => showTip(figure, placeOf(event)));
    root.addEventListener('pointerleave', () => hideTip(figure));
    root.addEventListener('blur', () => hideTip(figure));
    root.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: [-12, 0], ArrowRight: [12, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
      if (event.key === 'Escape') hideTip(figure);
      if (!step || !figure.read) return;
      event.preventDefault();
      const { box } = figure.read;
      const old = figure.place || { x: (box.left + box.right) / 2, y: box.top + 20 };
      showTip(figure, { x: Math.min(Math.max(old.x + step[0], box.left), box.right),
        y: Math.min(Math.max(old.y + step[1], box.top), box.bottom - 1) });
    });
  };
  const entriesOf = (chart) => (chart.series || chart.parts || []).map(({ name, color: dot }) => ({ name, dot }));
  const legend = (figure) => {
    const chart = figure.charts[Math.min(state.point, figure.charts.length - 1)];
    const box = html('div', { class: 'legend', role: 'group', 'aria-label': 'Show or hide' });
    for (const { name, dot } of entriesOf(chart)) {
      const button = html('button', { type: 'button', 'aria-pressed': !figure.hidden.has(name) },
        html('i', { style: `background:${color(dot)}` }), name);
      button.addEventListener('click', () => {
        if (!figure.hidden.delete(name)) figure.hidden.add(name);
        button.setAttribute('aria-pressed', !figure.hidden.has(name));
        draw(figure);
      });
      box.append(button);
    }
    const views = chart.kind === 'stacked' ? ['share', 'time'] : chart.tail_view ? ['distribution', 'tail'] : [];
    const buttons = views.map((name, number) => {
      const button = html('button', { type: 'button', class: 'view', 'aria-pressed': figure.view === number }, name);
      button.addEventListener('click', () => {
        figure.view = number;
        buttons.forEach((other, i) => other.setAttribute('aria-pressed', i === number));
        draw(figure);
      });
      return button;
    });
    if (buttons.length) box.append(html('span', { class: 'views', role: 'group', 'aria-label': 'View' }, ...buttons));
    return box;
  };

  const figures = page.figures.map(({ id, charts }) => {
    const place = document.getElementById(id);
    const plot = place.querySelector('.plot');
    const figure = { charts, plot, hidden: new Set(), view: 0, tip: html('div', { class: 'tip', hidden: '' }) };
    plot.before(legend(figure));
    draw(figure);
    let last = plot.clientWidth;
    new ResizeObserver(() => {
      if (plot.clientWidth !== last) {
        last = plot.clientWidth;
        draw(figure);
      }
    }).observe(plot);
    return figure;
  });

  const chooser = document.getElementById('point');
  chooser?.addEventListener('change', () => {
    state.point = chooser.selectedIndex;
    figures.forEach((figure) => { hideTip(figure); draw(figure); });
  });

  const theme = document.getElementById('theme');
  const dark = () => (document.documentElement.dataset.theme
    || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  const remember = (name) => { try { localStorage.setItem('plimsoll-theme', name); } catch { /* a file may have no storage */ } };
  const label = () => { theme.textContent = dark() ? 'Light' : 'Dark'; };
  try {
    const kept = localStorage.getItem('plimsoll-theme');
    if (kept) document.documentElement.dataset.theme = kept;
  } catch { /* then the system decides */ }
  label();
  theme.addEventListener('click', () => {
    document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
    remember(document.documentElement.dataset.theme);
    label();
  });
  document.documentElement.dataset.drawn = figures.length;
})();
