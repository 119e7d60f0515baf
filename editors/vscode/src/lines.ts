// Which line of which source file a line of machine code comes from.
//
// The text is PTX or AMD's assembly, with `.file` and `.loc` directives. A place counts for the instructions up to the
// next one; labels, directives and comments have none.

/** A line of a source file, from 1; the file as the compiler names it, relative to the folder of the built file. */
export interface Place {
  file: string;
  line: number;
}

/** Text with the places of its lines. */
export interface Listing {
  text: string;
  places: (Place | undefined)[];
}

/** `.file 1 "a.tk"`, or with the folder first: `.file 2 "std" "math.tk"`. */
const FILE = /^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?/;
const LOC = /^\s*\.loc\s+(\d+)\s+(\d+)/;
/** Instructions are indented; `@` and `{` begin them too. */
const INSTRUCTION = /^\s+[\w@{]/;

/** The places of the lines of an assembly. */
export function listing(text: string): Listing {
  const lines = text.split("\n");
  const files = new Map<string, string>();
  for (const line of lines) {
    const [, number, first, second] = FILE.exec(line) ?? [];
    if (number && first !== undefined) files.set(number, second === undefined ? first : `${first}/${second}`);
  }
  let place: Place | undefined;
  const places = lines.map((line) => {
    const [, number, at] = LOC.exec(line) ?? [];
    if (number && at) {
      const file = files.get(number);
      // Line 0 is code that no line has asked for.
      place = file === undefined || at === "0" ? undefined : { file, line: Number(at) };
    }
    if (/^}/.test(line)) place = undefined;
    return INSTRUCTION.test(line) ? place : undefined;
  });
  return { text, places };
}

/** A line of the page of `tk inspect --html`: text, then the number of its source and the line. */
type PageLine = [string] | [string, number, number];

/** A kernel for a target in the data of that page. */
interface PageVariant {
  label: string;
  sources: { name: string }[];
  views: { name: string; lines: PageLine[] }[];
}

/** The listings of one form in a page, by kernel. */
export function listings(page: string, form: string): Map<string, Listing> {
  const data = /<script type="application\/json" id="data">(.*?)<\/script>/s.exec(page)?.[1];
  const { kernels } = JSON.parse(data ?? '{"kernels":[]}') as { kernels: { name: string; variants: PageVariant[] }[] };
  const found = new Map<string, Listing>();
  for (const { name, variants } of kernels) {
    for (const { label, sources, views } of variants) {
      const lines = views.find((view) => view.name === form)?.lines;
      if (lines === undefined) continue;
      const places = lines.map(([, source, line]) => {
        const file = source === undefined ? undefined : sources[source]?.name;
        return file === undefined || !line ? undefined : { file, line };
      });
      found.set(`${name} ${label}`, { text: lines.map(([text]) => text).join("\n"), places });
    }
  }
  return found;
}
