import type { Base } from "./base";

/** A job's name. */
export type Name = `job-${number}`;

export interface Job<T = unknown> {
  readonly name: Name;
  run(input: T): Promise<void>;
}

export enum State {
  Waiting,
  Done = "done",
}

declare global {
  interface Window {
    job: Job;
  }
}

export namespace Names {
  export function of(job: Job): Name {
    return job.name;
  }
}

export abstract class Runner<T> implements Job<T> {
  private count = 0;
  constructor(public readonly name: Name) {}
  abstract stop(): void;
  async run(input: T): Promise<void> {
    this.count += 1;
    await Promise.resolve(input);
  }
}

export function parse(text: string): Job;
export function parse(text: Buffer): Job;
export function parse(text: unknown): Job {
  return JSON.parse(String(text)) as Job;
}

function local(a: number): number {
  return a * 2;
}
