variable "name" {
  description = "Name of the queue, without .fifo. The dead-letter queue is called <name>-dead."
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,70}$", var.name))
    error_message = "1 to 70 of A-Z a-z 0-9 _ - are allowed: -dead and .fifo must fit behind it."
  }
}

variable "fifo" {
  description = "Keep the events of one user in order (the group is the user's id). Costs a quarter more, and some throughput."
  type        = bool
  default     = false
}

variable "visibility_timeout" {
  description = "Seconds that a consumer owns a message without a sign of life. Forebay sends its own with each receive (queues.events.lease)."
  type        = number
  default     = 60

  validation {
    condition     = var.visibility_timeout >= 1 && var.visibility_timeout <= 43200
    error_message = "1 to 43200 seconds are allowed."
  }
}

variable "max_receive_count" {
  description = "Hand-outs before a message goes to the dead-letter queue. Crashes and deploys count too."
  type        = number
  default     = 10

  validation {
    condition     = var.max_receive_count >= 1 && var.max_receive_count <= 1000
    error_message = "1 to 1000 are allowed."
  }
}

variable "retention" {
  description = "Seconds that a message waits at most. The dead-letter queue keeps for 14 days, the longest there is."
  type        = number
  default     = 345600

  validation {
    condition     = var.retention >= 60 && var.retention < 1209600
    error_message = "60 to 1209599 seconds are allowed: on a standard queue the age goes on in the dead-letter queue, which must keep longer."
  }
}

variable "kms_key_id" {
  description = "A KMS key to encrypt with. Empty: the key of SQS itself, at no cost."
  type        = string
  default     = ""
}

variable "max_age" {
  description = "Alarm when the oldest message has waited so many seconds."
  type        = number
  default     = 300
}

variable "alarm_actions" {
  description = "ARNs (SNS topics, say) that are told of alarms and of their end."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of all that is made."
  type        = map(string)
  default     = {}
}
