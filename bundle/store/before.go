package store

// beforeChange is called before each change of the folder. The tests in test/bundles build the program with another file in place of
// this one, which ends the process here.
func beforeChange() {}
