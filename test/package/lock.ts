/** An entry of a package-lock.json, of which only these fields are refreshed; the others are passed on. */
export interface Locked {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly hasInstallScript?: boolean;
}

export interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

/** The package that stands at a path in node_modules. */
export const nameOf = (path: string): string => path.replace(/^.*node_modules\//, '');

/** Entries of everything that users get, by path in node_modules. */
export function shipped(lock: Lock): [path: string, entry: Locked][] {
  return Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true);
}

/**
 * What npm would have written into the package-lock.json of a folder whose one dependency is the tarball beside it,
 * with the dependencies' versions of our own lock: npm then needs nothing but what our own installation has left in
 * its cache.
 */
export function consumerLock(lock: Lock, name: string, tarball: string, bundled: readonly string[]): Lock {
  const inside = `node_modules/${name}`;
  const packages: Record<string, object> = {
    '': { dependencies: { [name]: `file:${tarball}` } },
    [inside]: { ...lock.packages[''], resolved: `file:${tarball}` },
  };
  for (const [path, entry] of shipped(lock)) {
    const isBundled = bundled.some((dependency) => path === `node_modules/${dependency}`);
    packages[isBundled ? `${inside}/${path}` : path] = entry;
  }
  return { ...lock, packages };
}
