// Package sample adds.
package sample

// Add adds.
func Add(one, other int) int { return one + other }
