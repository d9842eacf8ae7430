"""The intruder's view: what somebody who knows everything but the seed learns about a person in the file."""
