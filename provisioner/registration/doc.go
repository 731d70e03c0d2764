// Package registration keeps Director informed of runtimes: it registers them before they are accepted, reports how they are, and
// unregisters them when they are gone.
//
// All attempts of an order register under the same label, and the row of the registration is written before the first attempt. So
// an attempt finds the registration of an earlier one, and a Caretaker removes registrations that no runtime uses.
package registration
