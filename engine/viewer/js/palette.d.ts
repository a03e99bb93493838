/** The module that engine/viewer/page.py makes of engine/text/palette.py. */
export const KINDS: string[];
export const OTHER: string;
