"""Level, power and time of the tests of goodness of fit, beside those of other projects."""
