#!/usr/bin/env node
/**
 * Jobs.
 *
 * More about jobs.
 */
import fs from "node:fs";
import { join } from "node:path";

// Not documentation.
export const LIMIT = 1024;

const table = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/** Reads a job. */
export async function read(path, { follow = false } = {}) {
  const text = await fs.promises.readFile(join(path, "job"), "utf8");
  return JSON.parse(text);
}

export const write = (path, job) => {
  fs.writeFileSync(path, JSON.stringify(job));
};

export default class Job extends Base {
  #secret = 1;
  static kinds = new Map([["one", 1], ["two", 2], ["three", 3], ["four", 4], ["five", 5], ["six", 6], ["seven", 7]]);

  constructor(name) {
    super();
    this.name = name;
  }

  /** Its size. */
  get size() {
    return this.name.length;
  }

  *parts() {
    yield 1;
  }

  onEnd = () => {
    console.log("ended", this.name);
  };
}

module.exports.extra = function extra(a) {
  return a + 1;
};

if (require.main === module) {
  main();
}
