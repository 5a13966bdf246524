// A server with one planted cost, as planted.c: node planted.js PORT KIND.
const net = require("net");
const fs = require("fs");
const [port, kind] = process.argv.slice(2);
const from = Buffer.alloc(1 << 17);
const to = Buffer.alloc(1 << 17);
let sink = 1;
let kept = [];

function plantedSpin() {
  let x = sink;
  for (let i = 0; i < 20000; i++) x = (x * 48271) % 2147483647;
  sink = x;
}
function plantedCopy() {
  from.copy(to);
  sink += to[sink % to.length];
}
function plantedCall() {
  for (let i = 0; i < 3; i++) sink += fs.statSync("/").nlink;
}
function plantedAllocation() {
  kept = [];
  for (let i = 0; i < 400; i++) kept.push({ i, text: [i, i + 1, i + 2] });
  sink += kept.length;
}
function plantedSleep() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0.2);
}
const plant = { spin: plantedSpin, copy: plantedCopy, call: plantedCall, allocation: plantedAllocation, sleep: plantedSleep }[kind] ?? (() => {});
net
  .createServer({ noDelay: true }, (socket) => {
    socket.on("data", (bytes) => {
      plant();
      socket.write(bytes);
    });
    socket.on("error", () => {});
  })
  .listen(Number(port), "127.0.0.1");
