export { startSandbox, type Sandbox } from './server.ts';
export type { Dialect, SandboxOptions } from './options.ts';
export type { TruthRow, World } from './world.ts';
export type { Fault, Faults, Route } from './faults.ts';
export type { RequestRecord } from './requests.ts';
