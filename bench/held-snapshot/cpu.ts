import { readdirSync, readFileSync } from 'node:fs';
import type { Sql } from '../../src/store/connection/db.ts';

/** USER_HZ of every Linux there is. */
const TICK_MS = 10;

/** Fields of /proc/PID/stat behind the name, which may hold anything. */
function statOf(pid: string): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

/** The process of which the session's own is a child. */
export async function postmasterOf(sql: Sql): Promise<number> {
  const [{ pid }] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
  return Number(statOf(String(pid))?.[1]);
}

/** Processor time that a server has used: its processes, and those of its processes that have ended. */
export function serverCpuMs(postmaster: number): number {
  let ticks = 0;
  for (const pid of readdirSync('/proc')) {
    const stat = /^\d+$/.test(pid) ? statOf(pid) : null;
    if (stat === null) continue;
    const [utime, stime, childUtime, childStime] = stat.slice(11, 15).map(Number);
    if (Number(stat[1]) === postmaster) ticks += (utime ?? 0) + (stime ?? 0);
    if (Number(pid) === postmaster)
      ticks += (utime ?? 0) + (stime ?? 0) + (childUtime ?? 0) + (childStime ?? 0);
  }
  return ticks * TICK_MS;
}

/** Processor time that one process has used. */
export function processCpuMs(pid: number): number {
  const [utime, stime] = (statOf(String(pid)) ?? []).slice(11, 13).map(Number);
  return ((utime ?? 0) + (stime ?? 0)) * TICK_MS;
}
