// Package registration has runtimes stand in Director for as long as the Provisioner has them: it registers them before they are
// accepted, tells Director how they are, and has it forget them when they are gone.
//
// An order's tries all register with the same label, and its row stands in the database before the first one does. So a try finds what
// an earlier one has registered, and a Caretaker whatever is left that no runtime stands for.
package registration
