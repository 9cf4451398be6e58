import {applyPatches, enablePatches, produceWithPatches, type Patch} from "immer"

enablePatches()

type Step = {label: string; patches: Patch[]; inverse: Patch[]}

export interface History<T> {
	readonly state: T
	readonly canUndo: boolean
	readonly canRedo: boolean
	/** Changes the state, as one step that can be undone. A change without effect is no step. */
	change(label: string, recipe: (draft: T) => void): void
	/** Takes the last step back, and returns its label. */
	undo(): string | undefined
	/** Takes the last undone step again, and returns its label. */
	redo(): string | undefined
}

/** Creates a history of changes of a plain state. */
export function createHistory<T extends object>(initial: T): History<T> {
	let state = initial
	const done: Step[] = []
	const undone: Step[] = []
	return {
		get state() {
			return state
		},
		get canUndo() {
			return done.length > 0
		},
		get canRedo() {
			return undone.length > 0
		},
		change(label, recipe) {
			const [next, patches, inverse] = produceWithPatches(state, draft => {
				recipe(draft as T)
			})
			if (patches.length === 0) return
			state = next as T
			done.push({label, patches, inverse})
			undone.length = 0
		},
		undo() {
			const step = done.pop()
			if (!step) return undefined
			state = applyPatches(state, step.inverse)
			undone.push(step)
			return step.label
		},
		redo() {
			const step = undone.pop()
			if (!step) return undefined
			state = applyPatches(state, step.patches)
			done.push(step)
			return step.label
		}
	}
}
