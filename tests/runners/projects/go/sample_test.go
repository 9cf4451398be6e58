package sample

import (
	"fmt"
	"os"
	"testing"
)

func TestPasses(t *testing.T) { fmt.Println("on standard output") }

func TestFails(t *testing.T) {
	fmt.Fprintln(os.Stderr, "on standard error")
	if got := Add(1, 1); got != 3 {
		t.Errorf("got %d", got)
	}
}

func TestIsSkipped(t *testing.T) { t.Skip("not today") }

func TestWithParameters(t *testing.T) {
	for _, value := range []string{"one", "名前", "two words"} {
		t.Run(value, func(t *testing.T) {
			if value == "one" {
				t.Fatal("one is wrong")
			}
		})
	}
}
