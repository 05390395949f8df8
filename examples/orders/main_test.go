package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	dir, err := os.MkdirTemp("", "orders-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), os.Stdout, dir); err != nil {
		fmt.Println(err)
	}
	// Output:
	// built
	//   a-1 shipped 10.00
	//   a-2 refunded 0.00
	// rebuilt
	//   a-1 shipped 10.00
	//   a-2 refunded 0.00
}
