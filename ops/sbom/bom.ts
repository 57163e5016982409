interface Component {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly content: string }[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

/** What npm writes as CycloneDX; only these fields are refreshed. */
export interface Bom {
  readonly bomFormat: string;
  readonly metadata: { readonly component: Omit<Component, 'hashes'> };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

const DEVELOPMENT = 'cdx:npm:package:development';

/**
 * Without what serves development alone, named `name` (npm takes the folder's name), and with every patched package
 * telling so: `patches` are file names as patch-package has them, `package+1.2.3.patch`, in the folder `patchFolder`.
 */
export function shippedBom(bom: Bom, name: string, patchFolder: string, patches: readonly string[]): Bom {
  const components = bom.components.filter(
    ({ properties = [] }) => !properties.some((property) => property.name === DEVELOPMENT),
  );
  const refs = new Set([bom.metadata.component['bom-ref'], ...components.map((part) => part['bom-ref'])]);
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...bom.metadata.component, name } },
    components: components.map((part) => {
      const patch = `${part.name.replace('/', '+')}+${part.version}.patch`;
      if (!patches.includes(patch)) return part;
      return {
        ...part,
        pedigree: { patches: [{ type: 'unofficial', diff: { url: `${patchFolder}/${patch}` } }] },
      };
    }),
    dependencies: bom.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map((entry) => ({ ...entry, dependsOn: entry.dependsOn?.filter((ref) => refs.has(ref)) ?? [] })),
  };
}
