/** Item numbers in order of their keys: a binary heap over plain arrays. */
export class Heap {
  readonly #keys: number[] = [];
  readonly #items: number[] = [];

  get size(): number {
    return this.#keys.length;
  }

  /** Smallest key; Infinity where empty. */
  get first(): number {
    return this.#keys[0] ?? Infinity;
  }

  /** The item with the smallest key; undefined where empty. */
  get top(): number | undefined {
    return this.#items[0];
  }

  push(key: number, item: number): void {
    let at = this.#keys.length;
    this.#keys.push(key);
    this.#items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if ((this.#keys[parent] ?? 0) <= key) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** Takes out the item with the smallest key; the heap must not be empty. */
  pop(): number {
    const top = this.#items[0] as number;
    const key = this.#keys.pop() as number;
    const item = this.#items.pop() as number;
    if (this.#keys.length === 0) return top;
    this.#keys[0] = key;
    this.#items[0] = item;
    this.#sink();
    return top;
  }

  #sink(): void {
    const size = this.#keys.length;
    for (let at = 0; ;) {
      let child = 2 * at + 1;
      if (child >= size) return;
      if (child + 1 < size && (this.#keys[child + 1] as number) < (this.#keys[child] as number)) child += 1;
      if ((this.#keys[at] as number) <= (this.#keys[child] as number)) return;
      this.#swap(at, child);
      at = child;
    }
  }

  #swap(a: number, b: number): void {
    const [key, item] = [this.#keys[a] as number, this.#items[a] as number];
    this.#keys[a] = this.#keys[b] as number;
    this.#items[a] = this.#items[b] as number;
    this.#keys[b] = key;
    this.#items[b] = item;
  }
}
