// Copyright nobody.

// Package jobs runs jobs.
package jobs

import (
	"context"
	"fmt"
)

// Limit is how many jobs are kept.
const Limit = 1024

const (
	// Waiting is the first state.
	Waiting = iota
	done
)

var table = map[string]int{"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}

// Job is something to do.
type Job struct {
	Name string `json:"name"`
	next *Job
}

// Runner runs jobs.
type Runner interface {
	Run(ctx context.Context, job *Job) error
}

// Run runs the job,
// and says how it went.
//
// It never stops.
func (j *Job) Run(ctx context.Context) (err error) {
	// In a body.
	fmt.Println(j.Name)
	return nil
}

// Far from what follows.

func helper[T any](a T) T { return a }
