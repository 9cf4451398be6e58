// Publishes its state as expvar does.
package main

import (
	"expvar"
	"fmt"
	"net"
	"net/http"
)

func main() {
	orders := expvar.NewMap("orders")
	orders.Add("open", 3)
	expvar.NewString("note").Set("from go")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("listening %d\n", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
