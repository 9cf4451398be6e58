import {describe, expect, it} from "vitest"
import {createHistory} from "../src"

describe("createHistory", () => {
	it("undoes and redoes a change of a value", () => {
		const history = createHistory({title: "one"})
		history.change("rename", draft => {
			draft.title = "two"
		})
		expect(history.undo()).toBe("rename")
		expect(history.state).toEqual({title: "one"})
		expect(history.redo()).toBe("rename")
		expect(history.state).toEqual({title: "two"})
	})

	it("undoes one item that was appended", () => {
		const history = createHistory({items: ["a"]})
		history.change("append", draft => {
			draft.items.push("b")
		})
		history.undo()
		expect(history.state).toEqual({items: ["a"]})
	})

	it("undoes several items that were appended at once", () => {
		const history = createHistory({items: ["a"]})
		history.change("append", draft => {
			draft.items.push("b", "c", "d")
		})
		history.undo()
		expect(history.state).toEqual({items: ["a"]})
	})

	it("drops undone steps at the next change", () => {
		const history = createHistory({count: 0})
		history.change("one", draft => {
			draft.count = 1
		})
		history.undo()
		history.change("two", draft => {
			draft.count = 2
		})
		expect(history.canRedo).toBe(false)
	})
})
