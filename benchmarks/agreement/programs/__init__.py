"""The programs, a module for each subject: every public function of one is a program, and gets the package as `ti`."""
