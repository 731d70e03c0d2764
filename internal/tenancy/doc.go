// Package tenancy converts the IDs of tenants and subaccounts to the form in which the broker sends them and the Provisioner
// stores, compares and labels them. Platforms choose these IDs freely; the open-source Service Manager sends "-", for example. Both
// services use the same form, so an owner stays the same whichever of them has converted its ID.
//
// The form is called the label. The original is kept beside it, for people and for Director.
package tenancy
