import {enableMapSet} from "immer"
import {beforeAll, expect, it} from "vitest"
import {createEditor} from "../src"

beforeAll(() => enableMapSet())

it("inserts and removes lines", () => {
	const editor = createEditor("a\nb")
	editor.insert(1, "x", "y")
	expect(editor.text).toBe("a\nx\ny\nb")
	editor.remove(0, 2)
	expect(editor.text).toBe("y\nb")
})

it("undoes what it did, step by step", () => {
	const editor = createEditor("a\nb")
	editor.insert(2, "c", "d", "e")
	editor.remove(0, 4)
	editor.read("ada", 1)
	expect(editor.undo()).toBe("read by ada")
	editor.undo()
	expect(editor.text).toBe("a\nb\nc\nd\ne")
	editor.undo()
	expect(editor.text).toBe("a\nb")
	expect(editor.document.readers.size).toBe(0)
})

it("redoes what was undone", () => {
	const editor = createEditor("a")
	editor.insert(1, "b", "c", "d")
	editor.undo()
	editor.redo()
	expect(editor.text).toBe("a\nb\nc\nd")
})
