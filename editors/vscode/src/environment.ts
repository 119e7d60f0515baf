// What the parts of the extension need of each other.

export interface Environment {
  /** The command `tk`. */
  program(): string;
  /** Saves what the command reads from the disk. */
  save(): Promise<void>;
}
