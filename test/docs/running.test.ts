import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { VARIABLES } from '../../src/config/config.ts';
import { codeBlocks, PAGES, read } from './markdown.ts';
import { callsIn, checkCall } from './shell.ts';

interface Deployment {
  kind: string;
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: { runAsUser: number };
        containers: {
          env: { name: string; value: string }[];
          ports: { containerPort: number }[];
          livenessProbe: { httpGet: { path: string } };
          readinessProbe: { httpGet: { path: string } };
          volumeMounts: { name: string; mountPath: string }[];
        }[];
        volumes: { name: string }[];
      };
    };
  };
}

/** What the environment may hold of ours. */
const known = VARIABLES.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
/** Of Node.js and of terminals; and the rule that a secret may be given as a file. */
const OTHERS = ['NODE_EXTRA_CA_CERTS', 'NO_COLOR', 'FORCE_COLOR', 'NAME_FILE'];

test('every variable of the environment that a page names is a setting', () => {
  const named = PAGES.flatMap((page) =>
    [...read(page).matchAll(/`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)(?:=[^`]*)?`/g)].map(([, name = '']) => name),
  );
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !known.includes(name) && !OTHERS.includes(name))).toEqual([]);
});

const yaml = codeBlocks('yaml').map(({ page, text }) => [page, parse(text) as unknown] as const);

test('the Deployment fits the image: user, port, half-open requests, variables, mounts', () => {
  const [deployment] = yaml.map(([, text]) => text as Deployment).filter(({ kind }) => kind === 'Deployment');
  const pod = deployment?.spec.template.spec;
  const [container] = pod?.containers ?? [];
  const dockerfile = read('Dockerfile');
  expect(dockerfile).toContain(`USER ${pod?.securityContext.runAsUser}:`);
  expect(dockerfile).toContain(`EXPOSE ${container?.ports[0]?.containerPort}\n`);
  expect(container?.livenessProbe.httpGet.path).toBe('/livez');
  expect(container?.readinessProbe.httpGet.path).toBe('/readyz');
  // SIGTERM ends the daemon within ten seconds.
  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThan(10);
  expect(container?.env.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
  expect(container?.volumeMounts.map(({ name }) => name)).toEqual(pod?.volumes.map(({ name }) => name));
  const folders = container?.volumeMounts.map(({ mountPath }) => `${mountPath}/`) ?? [];
  for (const { name, value } of container?.env ?? [])
    if (name.endsWith('_FILE')) expect(folders.some((folder) => value.startsWith(folder))).toBe(true);
});

test('the unit starts what the program takes, and is not started again with a wrong setting', () => {
  const [unit] = codeBlocks('ini');
  const calls = callsIn(unit?.text ?? '');
  expect(calls).toEqual([['run']]);
  for (const call of calls) expect(() => checkCall(call)).not.toThrow();
  expect(unit?.text).toContain('RestartPreventExitStatus=78');
});
