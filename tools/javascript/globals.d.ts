// What stands in front of a widget's module or of the host: the libraries, the palette, the parts.
declare const d3: any;
declare const linear: any;
declare const PALETTE: Record<"light" | "dark", any>;
declare const PARTS: Record<string, string>;
