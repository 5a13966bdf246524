// A web server of Go's standard library: server PORT
package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
)

func main() {
	body := bytes.Repeat([]byte("x"), 1000)
	var log *os.File
	if path := os.Getenv("SERVICE_LOG"); path != "" {
		log, _ = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	}
	http.HandleFunc("/", func(writer http.ResponseWriter, request *http.Request) {
		if log != nil {
			fmt.Fprintf(log, "%s %s\n", request.Method, request.URL)
		}
		writer.Header().Set("Content-Type", "text/plain")
		writer.Write(body)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
