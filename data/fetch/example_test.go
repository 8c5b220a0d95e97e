package fetch_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"

	"fspda/data/fetch"
)

// A set is fetched once; a second call verifies what is there.
func ExampleSet_Fetch() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "fetch")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	set := fetch.Set{Files: []fetch.File{{Name: "greeting", Size: 5,
		SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}}}
	for range 2 {
		fetched, err := set.Fetch(context.Background(), dir, []string{server.URL}, nil)
		fmt.Println(fetched, err)
	}
	// Output:
	// [greeting] <nil>
	// [] <nil>
}
