export { startSandbox, type Sandbox } from './server.ts';
export { LONGEST_MS, LONGEST_TIMER_MS, type SandboxOptions } from './options.ts';
export type { TruthRow, World } from './world.ts';
export { AMBIGUITIES, type Ambiguity } from './ambiguities.ts';
export type { Fault } from './faults.ts';
export { routeLines } from './routes.ts';
export { controlLines } from './control/routes.ts';
export { type OwnSku, readOwnSkus } from './own-skus.ts';
