package store

// beforeChange is called before each change to the folder. The tests in test/bundles build the program with a different version of
// this file, whose beforeChange ends the process.
func beforeChange() {}
