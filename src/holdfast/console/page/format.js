"use strict";
// Numbers and times as a person reads them, and what a bar means. Pure: no page is needed to run this.

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0) value = 0;
  if (value < 10) return `${value.toFixed(1)} s`;
  const whole = Math.floor(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor(whole % 3600 / 60)} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor(whole % 86400 / 3600)} h`;
}

function clock(time) {
  return new Date(time * 1000).toLocaleTimeString("en-GB");
}

function count(number, one, many) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many || one + "s"}`;
}

function percent(value) {
  if (value === null || value === undefined) return "–";
  const shown = value * 100;
  return `${shown > 0 && shown < 10 ? shown.toFixed(1) : Math.round(shown)} %`;
}

// How much of a ttl is left, from 0 to 1; null where there is no ttl (session locks).
function leftOf(remaining, ttl) {
  if (remaining === null || !(ttl > 0)) return null;
  return Math.max(0, Math.min(1, remaining / ttl));
}

// A lease is renewed when two thirds are left. Below a half a renewal is late; below a fifth the 80 % rule is broken.
function levelOf(left) {
  if (left === null) return "none";
  return left >= 0.5 ? "good" : left >= 0.2 ? "fair" : "bad";
}

// Where a figure stands on a bar that ends at twice its limit, or at 100 %.
function gauge(value, limit) {
  const end = limit > 0 ? Math.max(limit * 2, Math.min(1, limit * 4)) : 1;
  const part = (number) => Math.max(0, Math.min(1, number / end));
  return { value: value === null ? 0 : limit > 0 ? part(value) : Number(value > 0), limit: limit > 0 ? part(limit) : 0 };
}

// The lanes of a timeline: holds that overlap in time are drawn below each other.
function laneOf(holds, now, most) {
  const ends = [], lanes = [];
  for (const hold of holds) {
    let lane = ends.findIndex((end) => end <= hold.begin + 0.001);
    if (lane < 0) lane = ends.length < most ? ends.length : most - 1;
    ends[lane] = Math.max(ends[lane] || 0, hold.end === null ? now : hold.end);
    lanes.push(lane);
  }
  return lanes;
}

// Round times for an axis: at most `most` of them between two.
function ticksOf(from, to, most) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const step = steps.find((each) => (to - from) / each <= most) || 86400 * Math.ceil((to - from) / 86400 / most);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// "#/lock?name=a%2Fb" is the view "lock" with its query.
function parseAddress(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "locks", query: Object.fromEntries(new URLSearchParams(query || "")) };
}

function addressOf(view, query) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== 0);
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return `#/${view}${text ? "?" + text : ""}`;
}
