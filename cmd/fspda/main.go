package main

import "fspda/cli"

func main() { cli.Main() }
