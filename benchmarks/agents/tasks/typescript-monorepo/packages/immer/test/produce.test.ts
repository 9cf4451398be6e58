import {expect, it} from "vitest"
import {enablePatches, produce, produceWithPatches} from "../src/immer"

enablePatches()

it("leaves the base alone", () => {
	const base = {list: [1, 2], nested: {deep: true}}
	const next = produce(base, draft => {
		draft.list.push(3)
	})
	expect(base.list).toEqual([1, 2])
	expect(next.list).toEqual([1, 2, 3])
	expect(next.nested).toBe(base.nested)
})

it("says what changed", () => {
	const [, patches] = produceWithPatches({list: [1]}, draft => {
		draft.list.push(2, 3)
	})
	expect(patches).toEqual([
		{op: "add", path: ["list", 1], value: 2},
		{op: "add", path: ["list", 2], value: 3}
	])
})
