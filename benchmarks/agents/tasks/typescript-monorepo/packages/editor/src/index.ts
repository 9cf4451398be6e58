import {createHistory} from "history"

export interface Document {
	lines: string[]
	readers: Map<string, number>
}

export interface Editor {
	readonly text: string
	readonly document: Document
	/** Inserts lines before the given one (0 is the first). */
	insert(at: number, ...lines: string[]): void
	/** Removes lines. */
	remove(at: number, count?: number): void
	/** Notes how far somebody has read. */
	read(who: string, line: number): void
	undo(): string | undefined
	redo(): string | undefined
}

/** Creates an editor of the lines of a text. */
export function createEditor(text = ""): Editor {
	const history = createHistory<Document>({lines: text === "" ? [] : text.split("\n"), readers: new Map()})
	return {
		get text() {
			return history.state.lines.join("\n")
		},
		get document() {
			return history.state
		},
		insert(at, ...lines) {
			history.change(`insert ${lines.length}`, draft => {
				draft.lines.splice(at, 0, ...lines)
			})
		},
		remove(at, count = 1) {
			history.change(`remove ${count}`, draft => {
				draft.lines.splice(at, count)
			})
		},
		read(who, line) {
			history.change(`read by ${who}`, draft => {
				draft.readers.set(who, line)
			})
		},
		undo: () => history.undo(),
		redo: () => history.redo()
	}
}
