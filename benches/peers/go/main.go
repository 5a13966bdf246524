// Go: a goroutine for each client, net.Conn's blocking calls on top of the runtime's poller.
// The package listens with the largest backlog that the kernel allows and sets TCP_NODELAY.
package main

import (
	"fmt"
	"net"
	"os"
)

// Bytes read at once; each connection keeps a buffer of this size for all its requests.
const bufferBytes = 16 * 1024

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: echo PORT")
		os.Exit(2)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("listening on", listener.Addr())
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go serve(conn)
	}
}

func serve(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, bufferBytes)
	for {
		count, err := conn.Read(buffer)
		if count > 0 {
			// Write returns only when all is written or the connection broke.
			if _, err := conn.Write(buffer[:count]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
