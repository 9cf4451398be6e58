package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
)

type Item struct{ payload [512]byte }

var kept []*Item
var sink float64

func burnTheProcessor(n int) float64 {
	sum := 0.0
	for i := 0; i < n; i++ {
		sum += math.Sqrt(float64(i))
	}
	return sum
}

func keepItems() {
	if len(kept) < 200000 {
		for i := 0; i < 1000; i++ {
			kept = append(kept, &Item{})
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	go http.Serve(listener, nil)
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	for {
		sink = burnTheProcessor(20000000)
		keepItems()
	}
}
