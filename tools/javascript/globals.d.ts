// What stands in front of a widget's module, of the host or of the worker: libraries, palette, parts, model.
declare const d3: any;
declare const linear: any;
declare const PALETTE: Record<"light" | "dark", any>;
declare const PARTS: Record<string, string>;
declare const ort: any;
declare const MODEL: { folder: string; megabytes: number; scripts: [string, number][] } | null;
interface Window { lent: Record<string, any>; held: Record<string, any> }
