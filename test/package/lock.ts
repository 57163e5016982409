/** An entry of a package-lock.json. Only these fields are read; the others are passed on. */
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

/** Returns the name of the package at a path in node_modules. */
export const nameOf = (path: string): string => path.replace(/^.*node_modules\//, '');

/** Returns the entries of everything that users get, by path in node_modules. */
export function shipped(lock: Lock): [path: string, entry: Locked][] {
  return Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true);
}

/**
 * Returns the package-lock.json that npm would write in a folder whose only dependency is the tarball next to it,
 * with the versions of our own lock. npm then needs only what our own installation left in its cache.
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
