type Variables = Readonly<Record<string, string | undefined>>;

/** Reads the environment of a service. Every complaint names the variable; values are not shown, a URL holds a password. */
export interface Environment {
  text(name: string, fallback?: string): string;
  optional(name: string): string | undefined;
  /** A whole number of at least 0. */
  whole(name: string, fallback: number): number;
  oneOf<const Choice extends string>(name: string, choices: readonly Choice[], fallback: NoInfer<Choice>): Choice;
}

export function environment(variables: Variables = process.env): Environment {
  const optional = (name: string): string | undefined => (variables[name] === '' ? undefined : variables[name]);
  const text = (name: string, fallback?: string): string => {
    const value = optional(name) ?? fallback;
    if (value === undefined) throw new Error(`${name} must be set`);
    return value;
  };
  return {
    optional,
    text,
    whole: (name, fallback) => {
      const value = Number(optional(name) ?? fallback);
      if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${name} must be a whole number of at least 0`);
      return value;
    },
    oneOf: (name, choices, fallback) => {
      const value = text(name, fallback);
      const choice = choices.find((known) => known === value);
      if (choice === undefined) throw new Error(`${name} must be one of ${choices.join(', ')}`);
      return choice;
    },
  };
}
